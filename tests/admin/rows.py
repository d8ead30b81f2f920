"""Rows for the admin's tests: ages count back from the database's clock, as the pages do."""

from datetime import timedelta
from itertools import count

from django.db import connection

from identity.sessions.backoffice.bounded import clock
from tests.kit.factories import RefreshSessionFactory, RequestFactory

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
PHONE, ADDRESS, AGENT = "+79991234567", "203.0.113.77", "CanaryBrowser/7.0"
SECRET = "5ec2e7" * 8

serial = count(1)


def session(status="Active", *, age=HOUR, left=DAY, parent=None, **values):
    """A session that last changed `age` ago and runs out when `left` is over."""
    known = {"token_hash": f"{SECRET}{next(serial)}", "ip_address": ADDRESS, "user_agent": AGENT}
    moments = {"now": clock(), "age": age, "left": left}
    return RefreshSessionFactory(status=status, parent_session=parent, **moments, **{**known, **values})


def request(status="Pending", *, age=MINUTE, left=4 * MINUTE, **values):
    """A confirmation request that was created `age` ago and runs out when `left` is over."""
    known = {"code_hash": f"{SECRET}{next(serial)}", "ip_address": ADDRESS, "user_agent": AGENT, "phone_number": PHONE}
    return RequestFactory(status=status, now=clock(), age=age, left=left, **{**known, **values})


def chain(length, *, tip="Expired", tip_age=100 * DAY, age=100 * DAY):
    """A rotation chain, the root first: Rotated sessions of one age, and a tip of another."""
    links = []
    for place in range(1, length + 1):
        last = place == length
        links.append(
            session(tip if last else "Rotated", age=tip_age if last else age, parent=links[-1] if links else None)
        )
    return links


def checksum():
    """All that both tables hold, in one value."""
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT (SELECT md5(string_agg(row::text, '|' ORDER BY id)) FROM refresh_sessions row),
                   (SELECT md5(string_agg(row::text, '|' ORDER BY id)) FROM sign_in_confirmation_requests row)
        """)
        return cursor.fetchone()
