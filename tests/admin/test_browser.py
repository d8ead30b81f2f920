"""The admin in Chromium: read, filtered and followed with a mouse and without, in both themes, on a narrow screen."""

import os
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect, sync_playwright

from local.browser import CHROMIUM, opened
from tests.admin import rows
from tests.admin.addresses import SESSIONS, backlog, change, changelist
from tests.admin.conftest import PASSWORD, VIEWS, user
from tests.admin.rows import DAY, MINUTE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not os.path.exists(CHROMIUM), reason="Chromium is missing: apt-get install chromium"),
]
NARROW, WIDE = 360, 1440
# Up to 0.1 counts as good; Django's own search icon moves by a hair, depending on when it arrives.
UNSEEN_SHIFT = 0.001
# How often to press Tab before saying that something cannot be reached.
PATIENCE = 60

# The least contrast between a text and what lies behind it, over all texts below a selector: WCAG's relative luminance.
LEAST_CONTRAST = """
(selector) => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const texts = [...document.querySelectorAll(selector + " *")].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
  return Math.min(...texts.map((element) => contrast(parse(getComputedStyle(element).color), behind(element))));
}
"""
LAYOUT_SHIFT = """
() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => { sum += entry.value; }))
    .observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => done(sum)));
})
"""


@pytest.fixture(scope="module")
def browser():
    """One browser for the module. Playwright keeps an event loop in this thread, which Django takes for async code."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright, opened(playwright) as chromium:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield chromium


@pytest.fixture
def visit(browser, live_server):
    """Open pages; each of them must stay on this host, without errors and without scripts or styles of its own."""
    complaints, contexts = [], []

    def watch(page: Page) -> Page:
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda sent: urlsplit(sent.url).netloc == urlsplit(live_server.url).netloc or complaints.append(sent.url),
        )
        page.on("response", lambda got: got.status < 400 or complaints.append(f"{got.status} {got.url}"))
        return page

    def visit(name, path="/admin/", *, width=WIDE, theme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, base_url=live_server.url
        )
        contexts.append(context)
        page = watch(context.new_page())
        page.goto(path)
        page.get_by_label("Username").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(lambda url: "/login/" not in url)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def viewer_name(transactional_db):
    return user("viewer", *VIEWS).username


def test_a_viewer_logs_in_and_reads_how_the_jobs_are_doing(visit, viewer_name):
    rows.session(left=-MINUTE)
    rows.request(left=-DAY)
    page = visit(viewer_name)
    first = page.locator("#content-main .app-identity_sessions tbody tr").first
    first.get_by_role("link", name="Backlog").click()
    expect(page.get_by_role("heading", name="Backlog")).to_be_visible()
    expect(page.locator("#verdict")).to_have_text("Not keeping up: expire_sessions on sign_in_confirmation_requests.")
    on_time = page.get_by_role("region", name="expire_sessions: refresh_sessions")
    expect(on_time.get_by_text("On time")).to_be_visible()
    expect(on_time.get_by_role("link", name="1 rows due in refresh_sessions: show them")).to_be_visible()
    late = page.get_by_role("region", name="expire_sessions: sign_in_confirmation_requests")
    expect(late.get_by_text("Late: rows wait for more than 10 minutes")).to_be_visible()
    expect(late.get_by_role("row", name="over 4 hours (late) 1")).to_be_visible()


def test_rows_that_run_out_appear_at_the_next_reload_and_are_gone_after_the_job(visit, viewer_name, capsys):
    page = visit(viewer_name, backlog())
    number = page.get_by_role("link", name="rows due in refresh_sessions")
    expect(number).to_contain_text("0")
    rows.session(left=-MINUTE)
    page.reload()
    expect(number).to_contain_text("1")
    call_command("expire_sessions")
    page.reload()
    expect(number).to_contain_text("0")


def test_each_filter_shows_its_rows(visit, viewer_name):
    overdue = rows.session(left=-MINUTE)
    whole = set(rows.chain(3))
    parent, child = rows.chain(2, tip="Active", tip_age=DAY)
    page = visit(viewer_name, changelist(SESSIONS))
    filters = page.get_by_role("navigation", name="Filter")
    for name, expected in [
        ("overdue", {overdue}),
        ("past retention: deletable", whole),
        ("past retention: blocked by a descendant", {parent}),
        ("All", {overdue, *whole, parent, child}),
    ]:
        filters.get_by_role("link", name=name, exact=True).click()
        expect(filters.locator("li.selected")).to_have_text(name)
        shown = page.locator("#result_list tbody th a").all_inner_texts()
        assert set(shown) == {str(row.pk) for row in expected}


def test_a_session_is_found_by_its_id(visit, viewer_name):
    wanted = rows.session()
    rows.session()
    page = visit(viewer_name, changelist(SESSIONS))
    page.get_by_role("textbox", name="Search").fill(str(wanted.pk)[:13])
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#result_list tbody th a")).to_have_text([str(wanted.pk)])


def test_a_chain_is_followed_to_its_tip_and_back(visit, viewer_name):
    root, middle, tip = rows.chain(3, tip="Active", tip_age=DAY)
    page = visit(viewer_name, change(root))
    expect(page.get_by_text("Past retention, but blocked")).to_be_visible()
    page.locator(".field-tip").get_by_role("link", name=str(tip.pk)).click()
    expect(page.get_by_text("Never deleted while Active.")).to_be_visible()
    page.locator(".field-parent").get_by_role("link").click()
    page.wait_for_url(f"**{change(middle)}")
    page.locator(".field-parent").get_by_role("link").click()
    page.wait_for_url(f"**{change(root)}")
    expect(page.locator(".field-parent .readonly")).to_have_text("none")


def test_an_age_tells_the_exact_moment_on_hover(visit, viewer_name):
    row = rows.session(age=3 * DAY + MINUTE)
    page = visit(viewer_name, changelist(SESSIONS))
    exact = f"{row.updated_at.replace(tzinfo=None).isoformat(sep=' ')} UTC"
    expect(page.locator(".field-changed").get_by_title(exact)).to_have_text("3 days ago")


@pytest.mark.parametrize(("codename", "sees"), [("view_personal_data", True), ("view_backlog", False)])
def test_personal_data_is_shown_with_the_permission_alone(codename, sees, visit, transactional_db):
    row = rows.session()
    page = visit(user("someone", *VIEWS, codename).username, change(row))
    expect(page.locator(".field-user-agent .readonly")).to_have_text(rows.AGENT if sees else "hidden")
    expect(page.locator(".field-ip-address .readonly")).to_have_text(rows.ADDRESS if sees else "hidden")


def test_a_superuser_finds_nothing_to_press_but_close(visit, transactional_db):
    row = rows.session()
    page = visit(user("root", superuser=True).username, change(row))
    content = page.locator("#content")
    expect(content.get_by_role("button")).to_have_count(0)
    expect(content.locator("input:visible, select, textarea")).to_have_count(0)
    content.get_by_role("link", name="Close").click()
    page.wait_for_url(f"**{changelist(SESSIONS)}*")
    expect(page.get_by_role("link", name="Add refresh session")).to_have_count(0)


def test_staff_without_permission_is_told_so(visit, transactional_db):
    page = visit(user("nobody").username)
    expect(page.get_by_text("You don’t have permission to view or edit anything.")).to_be_visible()


@pytest.fixture
def everything(transactional_db):
    """Something for each part of each page."""
    rows.session(left=-MINUTE)
    rows.session(left=-DAY)
    rows.request(left=-DAY)
    return rows.chain(3)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(theme, visit, viewer_name, everything):
    page = visit(viewer_name, backlog(), theme=theme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 18, 18)"}[theme]
    assert page.evaluate(LEAST_CONTRAST, ".backlog") >= 4.5
    page.goto(change(everything[0]))
    assert page.evaluate(LEAST_CONTRAST, "#content-main .readonly, #content-main") >= 4.5


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_no_page_is_wider_than_the_screen_and_nothing_moves_while_it_loads(width, visit, viewer_name, everything):
    page = visit(viewer_name, backlog(), width=width)
    for path in (backlog(), change(everything[0]), changelist(SESSIONS)):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate(LAYOUT_SHIFT) < UNSEEN_SHIFT, path
    page.goto(backlog())
    for part in page.locator(".backlog section, .backlog .verdict").all():
        box = part.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_pages_work_under_a_strict_content_security_policy(visit, viewer_name, everything):
    page = visit(viewer_name, backlog())

    def strictly(route):
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": "default-src 'self'"})

    page.route("**/*", strictly)
    for path in (backlog(), changelist(SESSIONS), change(everything[0])):
        page.goto(path)
        assert page.locator("script:not([src]), style").count() == 0
        assert page.locator("#content [style], #content [onclick]").count() == 0


def press_tab_until(page, selector):
    """Press Tab until the element that a selector finds has the focus, and can be seen to have it."""
    for _ in range(PATIENCE):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached with the keyboard")


def test_the_keyboard_alone_leads_from_the_login_to_the_tip_of_a_chain(visit, viewer_name, live_server, browser):
    root, tip = rows.chain(2, tip="Active", tip_age=DAY)
    page = browser.new_context(base_url=live_server.url).new_page()
    page.goto("/admin/")
    # The page gives it the focus a moment after it has loaded; what is typed before goes nowhere.
    expect(page.locator("#id_username")).to_be_focused()
    page.keyboard.type(viewer_name)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/login/" not in url)
    for selector, address in [
        (f'#content-main a[href="{backlog()}"]', backlog()),
        ('.backlog a[href$="waiting=blocked"]', f"{changelist(SESSIONS)}?waiting=blocked"),
        ("#result_list a", change(root)),
        (".field-tip a", change(tip)),
    ]:
        press_tab_until(page, selector)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url, address=address: url.removeprefix(live_server.url).startswith(address))
    expect(page.get_by_text("Never deleted while Active.")).to_be_visible()
    page.context.close()
