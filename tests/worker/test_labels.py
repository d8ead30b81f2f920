"""Series: as many after a long life as at the start, with labels from fixed lists."""

from itertools import cycle
from uuid import uuid4

from django.utils import timezone

from identity.sessions.jobs.expiry import EXPIRE_SESSIONS
from identity.sessions.jobs.job import Job, perform
from identity.sessions.jobs.retention import SESSION_RETENTION
from identity.sessions.jobs.stopping import Stop
from identity.sessions.options import load
from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.triggers import SESSIONS, Kit, execute

RUNS = 200
BAD = [uuid4() for _ in range(RUNS)]
JOBS = (EXPIRE_SESSIONS, SESSION_RETENTION)


def series(job: Job) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    return {
        (sample.name, frozenset(sample.labels.items()))
        for family in job.metrics.registry.collect()
        for sample in family.samples
    }


def test_two_hundred_mixed_runs_add_no_series(kit: Kit):
    kit.poison(SESSIONS, *BAD)
    for job in JOBS:  # as a worker does: one bucket of the lag is where the objective is
        options = load(job.options)
        job.metrics.prepare(interval=options.interval, max_run_duration=options.max_run_duration)
    before = {job.name: series(job) for job in JOBS}
    outcomes = set()
    variety = zip(BAD, cycle(JOBS), cycle(("1", "2", "5000")), cycle([False] * 6 + [True]), strict=False)
    for bad, job, batch_size, stopped in variety:
        now = timezone.now()
        execute("TRUNCATE refresh_sessions, sign_in_confirmation_requests")
        requests(1, now=now, age=40 * DAY, left=-DAY)
        sessions(1, now=now, left=-DAY, id=bad)
        chain(2, now=now)
        stop = Stop()
        if stopped:
            stop.request("SIGTERM")
        report = perform(job, load(job.options, batch_size=batch_size), alias="default", stop=stop)
        outcomes.add(report.outcome.value)
    assert outcomes == {"completed", "cancelled", "failed"}
    assert {job.name: series(job) for job in JOBS} == before


def test_labels_come_from_fixed_lists():
    bounds, allowed = set(), {}
    for name, labels in series(EXPIRE_SESSIONS) | series(SESSION_RETENTION):
        for label, value in labels:
            if label == "le":
                bounds.add(float(value))
            else:
                allowed.setdefault(label, set()).add(value)
                assert name.startswith("identity_")
    assert allowed == {
        "outcome": {"completed", "deadline", "cancelled", "failed"},
        "table": {"refresh_sessions", "sign_in_confirmation_requests"},
    }
    assert len(bounds) < 40
