from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "identity.demo"
    label = "identity_demo"
