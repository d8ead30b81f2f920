"""Take the pictures of docs/images: `manage.py demo_screenshots`, or `make screenshots`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection
from django.test.testcases import LiveServerThread
from django.utils.crypto import get_random_string
from playwright.sync_api import Browser, Page, sync_playwright

from local import rows
from local.browser import opened
from local.own_database import refuse_any_other_database
from local.users import make_users

IMAGES = Path(settings.BASE_DIR) / "docs" / "images"
SESSIONS = "/admin/identity_sessions/refreshsession/"


class Picture(NamedTuple):
    """A page, the window it is seen in, and whether to follow its first row's link."""

    name: str
    path: str
    width: int
    theme: Literal["light", "dark"]
    first_row: bool = False


PICTURES = [
    Picture("backlog", "/admin/identity_sessions/backlog/", 1440, "light"),
    Picture("backlog-dark", "/admin/identity_sessions/backlog/", 1440, "dark"),
    Picture("backlog-narrow", "/admin/identity_sessions/backlog/", 360, "light"),
    Picture("sessions", f"{SESSIONS}?waiting=overdue", 1440, "light"),
    Picture("session", f"{SESSIONS}?waiting=blocked", 1440, "light", first_row=True),
]


class Command(BaseCommand):
    help = "Fill the embedded database with sample rows and take pictures of the admin with Chromium."

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_any_other_database()
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            rows.refill(cursor)
        password = get_random_string(12)
        make_users(password)
        IMAGES.mkdir(parents=True, exist_ok=True)
        with served() as address, sync_playwright() as playwright, opened(playwright) as browser:
            for picture in PICTURES:
                taken = take(picture, browser, address, password)
                self.stdout.write(f"{taken.relative_to(settings.BASE_DIR)}")


@contextmanager
def served() -> Iterator[str]:
    """Serve the admin on a free port of this machine; yield its address."""
    server = LiveServerThread("127.0.0.1", StaticFilesHandler)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.terminate()


def take(picture: Picture, browser: Browser, address: str, password: str) -> Path:
    """Take one picture as the demo's viewer; return its file."""
    page = browser.new_page(viewport={"width": picture.width, "height": 1000}, color_scheme=picture.theme)
    log_in(page, address, password)
    page.goto(address + picture.path)
    if picture.first_row:
        page.locator("#result_list tbody th a").first.click()
        page.wait_for_url("**/change/**")
    file = IMAGES / f"{picture.name}.png"
    page.screenshot(path=file, full_page=not picture.path.startswith(SESSIONS))
    page.close()
    return file


def log_in(page: Page, address: str, password: str) -> None:
    page.goto(f"{address}/admin/")
    page.get_by_label("Username").fill("viewer")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
