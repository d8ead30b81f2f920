#!/usr/bin/env python
"""Run a management command; settings.local unless DJANGO_SETTINGS_MODULE says otherwise."""

import os
import signal
import sys

if os.getpid() == 1:  # of a container: the kernel spares it what it does not handle, and all the imports are to come
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    # A command is one process, also where the web server forks: in this mode it would leave a file behind at each run.
    for name in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        os.environ.pop(name, None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.local")
    try:
        # Read them now: Django would go on with half of its commands and a traceback.
        settings.INSTALLED_APPS  # noqa: B018
    except ImproperlyConfigured as refusal:
        sys.stderr.write(f"{refusal}\n")
        sys.exit(2)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
