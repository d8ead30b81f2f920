"""Online transitions: the row count decides, and what has run out is refused whatever its status says."""

from datetime import timedelta
from uuid import uuid4

import pytest

from identity.sessions.lifecycle import TransitionRefused, confirm, revoke, rotate
from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, MICROSECOND, NOW, RefreshSessionFactory, RequestFactory

pytestmark = pytest.mark.django_db

DEVICE = {"token_hash": "a" * 64, "ip_address": "203.0.113.7", "user_agent": "Firefox"}


def test_a_pending_request_is_confirmed_up_to_its_last_microsecond() -> None:
    request = RequestFactory.create(left=MICROSECOND)
    confirm(request.pk, now=NOW)
    request.refresh_from_db()
    assert (request.status, request.confirmed_at, request.updated_at) == ("Confirmed", NOW, NOW)


@pytest.mark.parametrize("status", ["Pending", "Expired"])
def test_a_request_that_ran_out_is_refused_before_and_after_the_job_has_come_by(status: str) -> None:
    request = RequestFactory.create(status=status, left=timedelta())
    with pytest.raises(TransitionRefused) as refusal:
        confirm(request.pk, now=NOW)
    assert refusal.value.code == "IDENTITY_CONFIRMATION_EXPIRED"
    request.refresh_from_db()
    assert (request.status, request.confirmed_at) == (status, None)


@pytest.mark.parametrize("status", ["Confirmed", "Exhausted", "Superseded", "Expired"])
def test_a_request_is_confirmed_once_and_only_from_pending(status: str) -> None:
    request = RequestFactory.create(status=status)
    with pytest.raises(TransitionRefused) as refusal:
        confirm(request.pk, now=NOW)
    assert refusal.value.code == "IDENTITY_CONFIRMATION_EXPIRED"
    before = request.confirmed_at
    request.refresh_from_db()
    assert (request.status, request.confirmed_at) == (status, before)


def test_rotation_leaves_the_session_rotated_and_returns_its_child_with_a_full_ttl() -> None:
    session = RefreshSessionFactory.create(left=MICROSECOND)
    child = rotate(session.pk, now=NOW, **DEVICE)
    session.refresh_from_db()
    assert (session.status, session.updated_at, session.revoked_at) == ("Rotated", NOW, None)
    assert session.expires_at == NOW + MICROSECOND
    child.refresh_from_db()
    assert (child.status, child.parent_session_id, child.user_id) == ("Active", session.pk, session.user_id)
    assert (child.created_at, child.updated_at, child.expires_at) == (NOW, NOW, NOW + 30 * DAY)
    assert (child.token_hash, child.ip_address, child.user_agent) == ("a" * 64, "203.0.113.7", "Firefox")


@pytest.mark.parametrize("status", ["Rotated", "Revoked", "Expired"])
def test_an_ended_session_is_not_rotated_and_gets_no_child(status: str) -> None:
    session = RefreshSessionFactory.create(status=status)
    with pytest.raises(TransitionRefused) as refusal:
        rotate(session.pk, now=NOW, **DEVICE)
    assert refusal.value.code == "IDENTITY_SESSION_NOT_ACTIVE"
    assert list(RefreshSession.objects.values_list("pk", "status")) == [(session.pk, status)]


def test_a_session_that_ran_out_is_not_rotated_while_it_is_still_active() -> None:
    session = RefreshSessionFactory.create(left=timedelta())
    with pytest.raises(TransitionRefused):
        rotate(session.pk, now=NOW, **DEVICE)
    assert list(RefreshSession.objects.values_list("pk", "status")) == [(session.pk, "Active")]


def test_a_rotation_whose_child_cannot_be_stored_leaves_the_session_active() -> None:
    session = RefreshSessionFactory.create()
    with pytest.raises(Exception, match="too long"):
        rotate(session.pk, now=NOW, **DEVICE | {"token_hash": "a" * 129})
    session.refresh_from_db()
    assert session.status == "Active"


def test_revoking_notes_the_moment_and_the_reason_once() -> None:
    session = RefreshSessionFactory.create()
    revoke(session.pk, now=NOW, reason="signed out")
    with pytest.raises(TransitionRefused) as refusal:
        revoke(session.pk, now=NOW + DAY, reason="stolen")
    assert refusal.value.code == "IDENTITY_SESSION_NOT_ACTIVE"
    session.refresh_from_db()
    assert (session.status, session.updated_at, session.revoked_at) == ("Revoked", NOW, NOW)
    assert session.revoked_reason == "signed out"


def test_a_session_that_ran_out_expires_and_is_not_revoked() -> None:
    session = RefreshSessionFactory.create(left=timedelta())
    with pytest.raises(TransitionRefused):
        revoke(session.pk, now=NOW, reason="signed out")
    session.refresh_from_db()
    assert (session.status, session.revoked_at, session.revoked_reason) == ("Active", None, None)


def test_other_rows_are_left_alone() -> None:
    bystanders = [RefreshSessionFactory.create(), RequestFactory.create()]
    before = [row.__class__.objects.filter(pk=row.pk).values().get() for row in bystanders]
    confirm(RequestFactory.create().pk, now=NOW)
    rotate(RefreshSessionFactory.create().pk, now=NOW, **DEVICE)
    revoke(RefreshSessionFactory.create().pk, now=NOW, reason="signed out")
    assert [row.__class__.objects.filter(pk=row.pk).values().get() for row in bystanders] == before


def test_an_unknown_id_is_refused_like_one_that_ran_out() -> None:
    for transition, fields in ((confirm, {}), (rotate, DEVICE), (revoke, {"reason": "signed out"})):
        with pytest.raises(TransitionRefused):
            transition(uuid4(), now=NOW, **fields)


def test_each_transition_costs_no_read_before_its_update(django_assert_num_queries) -> None:
    request, session = RequestFactory.create(), RefreshSessionFactory.create()
    with django_assert_num_queries(1):
        confirm(request.pk, now=NOW)
    with django_assert_num_queries(1):
        revoke(session.pk, now=NOW, reason="signed out")
