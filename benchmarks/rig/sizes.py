"""How much is measured: `full` is what docs/benchmarks.md records, `short` fits into a break, `tiny` shows it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Size:
    """Row counts and repetitions of one size."""

    name: str
    pairs: int
    rows: int  # due sessions, old requests, the backlog of copies and of the online runs
    chains: int  # of 8 sessions on average
    long_chains: int  # of `long_chain` sessions each
    long_chain: int
    stored: int  # rows that are kept and must cost nothing
    few: int  # rows of the table that `stored` is compared with
    ticks: int
    peers: int
    copies: tuple[int, ...] = (2, 4)
    online_seconds: int  # of the quiet stretch that the others are compared with
    pauses_ms: tuple[int, ...] = (0, 50, 200)


SIZES = {
    size.name: size
    for size in (
        Size(
            name="tiny", pairs=1, rows=6_000, chains=200, long_chains=2, long_chain=300, stored=5_000, few=500,
            ticks=3, peers=1_000, copies=(2,), online_seconds=1, pauses_ms=(0, 50),
        ),
        Size(
            name="short", pairs=3, rows=100_000, chains=8_000, long_chains=30, long_chain=1_000, stored=300_000,
            few=5_000, ticks=30, peers=50_000, online_seconds=3,
        ),
        Size(
            name="full", pairs=3, rows=1_000_000, chains=60_000, long_chains=200, long_chain=2_000, stored=5_000_000,
            few=5_000, ticks=50, peers=500_000, online_seconds=30,
        ),
    )
}  # fmt: skip
