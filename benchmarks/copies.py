"""Several copies of a job at once on one backlog: no slower than one, and no row done twice."""

from functools import partial

from benchmarks.rig import data
from benchmarks.rig.pairs import in_turn
from benchmarks.rig.report import Goal, Results, Row, short
from benchmarks.rig.runs import together
from benchmarks.rig.server import Server
from benchmarks.rig.sizes import Size

JOBS = (
    ("expire_sessions", "due", "n_tup_upd", "expire sessions"),
    ("session_retention", "mixed", "n_tup_del", "delete chains"),
)


def measure(server: Server, size: Size, results: Results) -> None:
    server.fill("due", data.due_sessions(size.rows))
    server.fill("mixed", data.chains(2 * size.rows // 8, longest=15))
    for job, template, counter, name in JOBS:
        for copies in size.copies:
            found = in_turn(
                f"{name}, {copies} copies",
                pairs=size.pairs,
                ours=partial(seconds, server, job, copies, template, counter),
                other=partial(seconds, server, job, 1, template, counter),
            )
            results.rows.append(
                Row(
                    what=f"{name}: {copies} copies at once",
                    against="1 copy: seconds until all is done",
                    seen=found.ratio,
                    goal=Goal(at_most=1.1),
                    figures=f"{short(found.ours.median)} against {short(found.other.median)} s",
                )
            )


def seconds(server: Server, job: str, copies: int, template: str, counter: str) -> float:
    """Return the seconds until the last copy ended; refuse a result in which a row was left or done twice."""
    server.clone(f"bench_{template}")
    with server.connect() as connection:
        took, runs = together(server, job, copies=copies)
        claimed = sum(run.rows for run in runs)
        connection.execute("SELECT pg_stat_force_next_flush()")
        ((done,),) = connection.execute(
            f"SELECT {counter} FROM pg_stat_user_tables WHERE relname = 'refresh_sessions'".encode()
        )
        left = min(run.left or 0 for run in runs)  # whoever ended first saw what another was at
    if claimed != done or left:
        raise RuntimeError(f"{copies} copies of {job} claim {claimed} rows, {done} were changed, {left} are left")
    return took
