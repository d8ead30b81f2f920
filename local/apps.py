from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "local"
    label = "identity_demo"
