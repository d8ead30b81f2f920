"""The page of a row: its chain as links, and what the jobs will do with it and when."""

from datetime import timedelta

import pytest
from django.utils.html import strip_tags

from identity.sessions.backoffice import chain_links, descent
from tests.admin import rows
from tests.admin.addresses import change
from tests.admin.rows import DAY, HOUR, MINUTE


def fields(client, row):
    """The facts on a row's page by their label: (text, html)."""
    response = client.get(change(row))
    assert response.status_code == 200
    facts = {}
    for fieldset in response.context["adminform"]:
        for line in fieldset:
            for field in line:
                facts[field.field["label"]] = str(field.contents())
    return facts


def text(client, row, label):
    return " ".join(strip_tags(fields(client, row)[label]).split())


def moment(when):
    return f"{when.replace(tzinfo=None).isoformat(sep=' ')} UTC"


def test_a_session_links_to_its_parent_its_children_and_the_tip(viewer):
    root, middle, tip = rows.chain(3)
    facts = fields(viewer, middle)
    assert f'href="{change(root)}"' in facts["Parent"]
    assert f'href="{change(tip)}"' in facts["Children"]
    assert f'href="{change(tip)}"' in facts["Tip"]
    assert f'href="{change(tip)}"' in fields(viewer, root)["Tip"]
    assert change(tip) not in fields(viewer, root)["Children"]


def test_a_session_alone_says_that_it_is(viewer):
    facts = fields(viewer, rows.session())
    assert (facts["Parent"], facts["Children"], facts["Tip"]) == ("none", "none", "this session")


def test_a_fork_has_two_tips(viewer):
    root = rows.session("Rotated")
    tips = [rows.session(parent=root), rows.session("Expired", parent=root)]
    assert all(change(tip) in fields(viewer, root)["Tip"] for tip in tips)


def test_many_children_are_cut_short(viewer, monkeypatch):
    monkeypatch.setattr(chain_links, "SHOWN", 2)
    root = rows.session("Rotated")
    for _ in range(5):
        rows.session(parent=root)
    children = fields(viewer, root)["Children"]
    assert children.count("<li>") == 2
    assert "and 3 more" in children


def test_a_chain_too_long_to_read_says_so(viewer, monkeypatch):
    monkeypatch.setattr(descent, "CAP", 3)
    root = rows.chain(6)[0]
    assert fields(viewer, root)["Tip"] == "not read to the end"
    assert "not known" in text(viewer, root, "Retention")


def test_a_session_that_is_its_own_parent_is_shown_all_the_same(viewer):
    row = rows.session("Rotated")
    row.parent_session = row
    row.save()
    assert fields(viewer, row)["Tip"] == "not read to the end"


@pytest.mark.parametrize("make", [rows.session, rows.request])
def test_a_live_row_says_when_it_runs_out(make, viewer):
    row = make(left=2 * HOUR)
    assert text(viewer, row, "Expiry").startswith(
        f"Live: the first run of expire_sessions after {moment(row.expires_at)}"
    )


@pytest.mark.parametrize("make", [rows.session, rows.request])
def test_an_overdue_row_says_for_how_long_and_that_the_next_run_takes_it(make, viewer, monkeypatch):
    monkeypatch.setenv("EXPIRE_SESSIONS_POLLING_INTERVAL", "7m")
    row = make(left=-2 * HOUR - timedelta(seconds=30))
    assert text(viewer, row, "Expiry") == (
        "Overdue for 2 hours: the next run of expire_sessions makes it Expired. A run starts every 7 minutes."
    )


@pytest.mark.parametrize("row", [("session", "Rotated"), ("session", "Expired"), ("request", "Confirmed")])
def test_a_row_whose_status_is_final_is_left_alone_by_expiry(row, viewer):
    kind, status = row
    made = getattr(rows, kind)(status, left=-DAY)
    assert text(viewer, made, "Expiry") == f"expire_sessions leaves it alone: {status} is final."


@pytest.mark.parametrize(("kind", "kept"), [("session", 90), ("request", 30)])
def test_a_young_row_says_from_when_on_it_goes(kind, kept, viewer):
    row = getattr(rows, kind)("Expired", age=5 * DAY, left=-4 * DAY)
    said = text(viewer, row, "Retention")
    assert said.startswith(f"Kept until {kept} days after ")
    gone_from = row.updated_at + kept * DAY
    assert f"the first run of session_retention after {moment(gone_from)}" in said
    opening = gone_from.replace(hour=2, minute=0, second=0, microsecond=0)
    assert moment(opening if opening > gone_from else opening + DAY) in said


@pytest.mark.parametrize(("kind", "age"), [("session", 91), ("request", 31)])
def test_an_old_row_goes_in_the_next_run(kind, age, viewer, monkeypatch):
    monkeypatch.setenv("SESSION_RETENTION_NIGHT_WINDOW_UTC", "00:00-24:00")
    row = getattr(rows, kind)("Expired", age=age * DAY)
    assert text(viewer, row, "Retention") == (
        "Past retention: session_retention deletes it in its next run (the night window 00:00-24:00 UTC is open now)."
    )


def test_an_old_chain_goes_together(viewer):
    root = rows.chain(3)[0]
    assert text(viewer, root, "Retention").startswith("Past retention, and so is all that came after it (2)")


def test_an_old_session_is_blocked_by_a_live_descendant(viewer):
    root, middle, tip = rows.chain(3, tip="Active", tip_age=DAY)
    for row in (root, middle):
        said = text(viewer, row, "Retention")
        assert said.startswith("Past retention, but blocked as long as sessions that came after it are kept (1 live).")
        assert moment(tip.updated_at + 90 * DAY) in said
    assert text(viewer, tip, "Retention").startswith("Never deleted while Active.")


def test_an_old_session_is_blocked_by_a_young_descendant_until_that_one_goes(viewer):
    root, tip = rows.chain(2, tip="Revoked", tip_age=10 * DAY)
    said = text(viewer, root, "Retention")
    assert "blocked as long as sessions that came after it are kept (1 not past retention, 0 of them live)." in said
    assert moment(tip.updated_at + 90 * DAY) in said
    assert "Each rotation puts it off" not in said


def test_a_live_session_that_outlives_its_retention_goes_after_it_has_run_out(viewer, monkeypatch):
    monkeypatch.setenv("SESSION_RETENTION_REFRESH_TERMINAL_RETENTION", "1d")
    row = rows.session(left=3 * DAY)
    assert f"after {moment(row.expires_at)}" in text(viewer, row, "Retention")


def test_the_moments_of_a_row_are_written_out(viewer):
    row = rows.session("Revoked", age=3 * DAY + MINUTE)
    assert text(viewer, row, "Changed") == f"3 days ago ({moment(row.updated_at)})"
    assert text(viewer, row, "Reason") == "signed out"
