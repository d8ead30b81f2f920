"""The web process: the admin and /metrics."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.production")
application = get_wsgi_application()
