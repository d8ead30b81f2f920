"""Sample rows: some 20,000 sessions and requests as a busy service leaves them, on both sides of every limit.

They are made inside the server, the same ones each time but for the clock: ages count back from now().
"""

from dataclasses import dataclass
from typing import LiteralString

from django.db.backends.utils import CursorWrapper


@dataclass(frozen=True, kw_only=True)
class Chains:
    """Sign-ins of one kind. Each was rotated some times and ends in a session of status `tip`.

    `youngest` and `oldest` tell how long ago the tip came into its status, `step` how often the device came back.
    """

    name: str
    count: int
    tip: str
    youngest: str
    oldest: str
    shortest: int = 1
    longest: int = 8
    step: str = "4 days"


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Confirmation requests of one status; `youngest` and `oldest` are ages."""

    name: str
    count: int
    status: str
    youngest: str
    oldest: str


CHAINS = [
    Chains(name="in use", count=900, tip="Active", youngest="0", oldest="29 days"),
    # Their first sessions are past retention and stay, because the last one lives.
    Chains(name="in use for a year", count=30, tip="Active", youngest="0", oldest="9 days", shortest=20, longest=60),
    Chains(name="just run out", count=450, tip="Active", youngest="30 days", oldest="32 days"),
    Chains(name="a minute overdue", count=5, tip="Active", youngest="30 days 00:01", oldest="30 days 00:01"),
    Chains(name="about to run out", count=5, tip="Active", youngest="29 days 23:50", oldest="29 days 23:50"),
    Chains(name="run out", count=300, tip="Expired", youngest="33 days", oldest="89 days"),
    Chains(name="run out long ago", count=500, tip="Expired", youngest="91 days", oldest="200 days"),
    Chains(name="signed out", count=300, tip="Revoked", youngest="1 day", oldest="89 days"),
    Chains(name="signed out long ago", count=400, tip="Revoked", youngest="91 days", oldest="200 days"),
    Chains(name="a minute past retention", count=5, tip="Revoked", youngest="90 days 00:01", oldest="90 days 00:01"),
    Chains(name="ten minutes to go", count=5, tip="Revoked", youngest="89 days 23:50", oldest="89 days 23:50"),
    # What a run that was cut leaves behind: the tip is gone, the rest of the chain waits for the next night.
    Chains(name="left over", count=20, tip="Rotated", youngest="95 days", oldest="120 days"),
    Chains(
        name="a script", count=1, tip="Expired", youngest="100 days", oldest="100 days",
        shortest=3000, longest=3000, step="30 minutes",
    ),
]  # fmt: skip

REQUESTS = [
    Requests(name="waiting", count=120, status="Pending", youngest="0", oldest="1 minute"),
    Requests(name="never used", count=900, status="Pending", youngest="5 minutes", oldest="2 days"),
    Requests(name="a minute overdue", count=5, status="Pending", youngest="00:06", oldest="00:06"),
    Requests(name="forgotten", count=80, status="Pending", youngest="31 days", oldest="50 days"),
    *[
        Requests(name=f"{age} {status}", count=count // share, status=status, youngest=youngest, oldest=oldest)
        for status, count in [("Confirmed", 1500), ("Expired", 700), ("Exhausted", 150), ("Superseded", 250)]
        for age, share, youngest, oldest in [
            ("recent", 1, "1 day", "29 days"),
            ("old", 2, "31 days", "60 days"),
            ("a minute past retention", 50, "30 days 00:01", "30 days 00:01"),
            ("ten minutes to go", 50, "29 days 23:50", "29 days 23:50"),
        ]
    ],
]

INSERT_CHAINS: LiteralString = """
    INSERT INTO refresh_sessions (id, user_id, parent_session_id, status, token_hash, created_at, updated_at,
                                  expires_at, revoked_at, revoked_reason, ip_address, user_agent)
    SELECT md5(concat_ws('/', name, chain, link))::uuid,
           md5('user ' || chain %% 700)::uuid,
           CASE WHEN link > 1 THEN md5(concat_ws('/', name, chain, link - 1))::uuid END,
           CASE WHEN link < links THEN 'Rotated' ELSE tip END,
           encode(sha256(convert_to(concat_ws('/', 'token', name, chain, link), 'UTF8')), 'hex'),
           begun - (links - link) * step,
           CASE WHEN link < links THEN begun - (links - link - 1) * step ELSE moved END,
           begun - (links - link) * step + interval '30 days',
           CASE WHEN link = links AND tip = 'Revoked' THEN moved END,
           CASE WHEN link = links AND tip = 'Revoked' THEN 'SignedOut' END,
           ('203.0.113.' || chain %% 254 + 1)::inet,
           'IdentityDemo/1.0 (phone ' || chain %% 700 || ')'
    FROM (
        SELECT *, moved - CASE WHEN tip = 'Revoked' THEN back ELSE interval '0' END AS begun FROM (
            SELECT chain, %(name)s::text AS name, %(tip)s::text AS tip,
                   %(shortest)s + floor(random() * (%(longest)s - %(shortest)s + 1))::int AS links,
                   (0.1 + 0.9 * random()) * %(step)s::interval AS step,
                   now() - %(youngest)s::interval
                         - random() * (%(oldest)s::interval - %(youngest)s::interval) AS moved,
                   random() * interval '1 day' AS back
            FROM generate_series(1, %(count)s) AS chain
        ) AS sign_in
    ) AS chains, generate_series(1, links) AS link
"""

# A token that was used twice: its session has two children. Half of the second ones are in use, half long run out.
INSERT_FORKS: LiteralString = """
    INSERT INTO refresh_sessions (id, user_id, parent_session_id, status, token_hash, created_at, updated_at,
                                  expires_at, ip_address, user_agent)
    SELECT md5('fork of ' || id)::uuid, user_id, id, CASE WHEN lives THEN 'Active' ELSE 'Expired' END,
           encode(sha256(convert_to('fork of ' || id, 'UTF8')), 'hex'), born, born, born + interval '30 days',
           ip_address, user_agent
    FROM (
        SELECT *, CASE WHEN lives THEN now() - interval '2 days' ELSE updated_at + interval '1 second' END AS born
        FROM (
            SELECT *, row_number() OVER (ORDER BY id) %% 2 = 0 AS lives FROM refresh_sessions
            WHERE status = 'Rotated' AND updated_at < now() - interval '91 days' ORDER BY id LIMIT 60
        ) AS parent
    ) AS fork
"""

INSERT_REQUESTS: LiteralString = """
    INSERT INTO sign_in_confirmation_requests (id, user_id, phone_number, code_hash, status, attempts, created_at,
                                               updated_at, expires_at, confirmed_at, ip_address, user_agent)
    SELECT md5(concat_ws('/', name, request))::uuid,
           CASE WHEN request %% 10 > 0 THEN md5('user ' || request %% 700)::uuid END,
           '+1555' || lpad((request %% 700)::text, 7, '0'),
           encode(sha256(convert_to(concat_ws('/', 'code', name, request), 'UTF8')), 'hex'),
           status,
           CASE status WHEN 'Exhausted' THEN 5 ELSE request %% 3 END,
           created_at,
           CASE WHEN status IN ('Pending', 'Expired') THEN created_at ELSE created_at + interval '40 seconds' END,
           created_at + interval '5 minutes',
           CASE WHEN status = 'Confirmed' THEN created_at + interval '40 seconds' END,
           ('198.51.100.' || request %% 254 + 1)::inet,
           'IdentityDemo/1.0 (phone ' || request %% 700 || ')'
    FROM (
        SELECT request, %(name)s::text AS name, %(status)s::text AS status,
               now() - %(youngest)s::interval - random() * (%(oldest)s::interval - %(youngest)s::interval) AS created_at
        FROM generate_series(1, %(count)s) AS request
    ) AS requests
"""


def refill(cursor: CursorWrapper) -> None:
    """Empty both tables and fill them anew."""
    cursor.execute("TRUNCATE refresh_sessions, sign_in_confirmation_requests")
    cursor.execute("SELECT setseed(0.5)")
    for chains in CHAINS:
        cursor.execute(INSERT_CHAINS, vars(chains))
    cursor.execute(INSERT_FORKS, [])
    for requests in REQUESTS:
        cursor.execute(INSERT_REQUESTS, vars(requests))
    cursor.execute("ANALYZE refresh_sessions, sign_in_confirmation_requests")
