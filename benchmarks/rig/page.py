"""Write what a run has found into docs/benchmarks.md, between two marks: the words around them are written by hand."""

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.rig import plots
from benchmarks.rig.report import HEADINGS, Results, aligned
from benchmarks.rig.server import MAINTENANCE, ROOT, Server
from benchmarks.rig.sizes import Size

PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
PACKAGES = ("django", "psycopg", "django-oauth-toolkit", "djangorestframework-simplejwt")


def write(results: Results, *, server: Server, size: Size, seconds: float) -> None:
    """Replace what stands between the marks by the tables and plots of a run, and what it ran on."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    parts = [provenance(server, size, seconds), aligned(HEADINGS, [row.cells() for row in results.rows])]
    for table in results.tables:
        parts.append(f"### {table.title}\n\n{aligned(table.headings, table.lines)}")
        if table.note:
            parts.append(table.note)
    for plot in plots.draw(results, IMAGES):
        parts.append(f"![{plot.caption}](images/{plot.file})")
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text("\n\n".join([before + BEGIN, *parts, END + after]))


def provenance(server: Server, size: Size, seconds: float) -> str:
    """Tell the machine, the versions, the settings of the server and the command."""
    with server.connect(MAINTENANCE) as connection:
        ((postgres,),) = connection.execute("SHOW server_version")
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    lines = [
        f"Measured {datetime.now(UTC):%Y-%m-%d} with `make bench SIZE={size.name}` in {seconds / 60:.0f} minutes.",
        "",
        f"* Machine: {processor()}, {os.cpu_count()} cores, {memory()} GB of memory, {platform.system()}"
        f" {platform.release()}",
        f"* PostgreSQL {postgres}; {server.settings}",
        f"* Python {platform.python_version()}, {packages}",
        f"* {size.pairs} pairs each; the figure is the median, in brackets the lowest and the highest",
    ]
    return "\n".join(lines)


def processor() -> str:
    names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else platform.machine()


def memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3)
