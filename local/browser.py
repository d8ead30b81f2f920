"""Debian's Chromium, closed to everything but this machine."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Playwright

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",  # it does not start as root without
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers have 64 MB there
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def opened(playwright: Playwright) -> Iterator[Browser]:
    """Yield a browser without a window."""
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    try:
        yield browser
    finally:
        browser.close()
