"""pytest plugin of CI (`-p tests.kit.noskip`): a skipped test fails, or a missing tool would pass for a green run."""

import pytest


def refuse(report):
    """Turn a skip, but not an expected failure, into a failure that names the reason."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"CI skips nothing: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return refuse((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return refuse((yield))
