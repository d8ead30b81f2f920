"""The alerts and the dashboard: they parse, they fire when they should, and they ask for metrics that there are."""

import json
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path

import pytest

from tests.kit.workers import ROOT, Worker, free_port, scrape

PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = ROOT / "deploy" / "grafana" / "identity-sessions.json"
RULES = (PROMETHEUS / "rules.yml").read_text()
ALERTS = re.findall(r"^      - alert: (\w+)$", RULES, flags=re.MULTILINE)
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()


def promtool(*arguments: str) -> str:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([program, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def metrics(text: str) -> set[str]:
    return set(re.findall(r"\bidentity_(?:expire_sessions|session_retention)_[a-z_]+", text))


def panels() -> list[dict]:
    return json.loads(DASHBOARD.read_text())["panels"]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def test_the_rules_are_valid():
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "rules.yml")


@pytest.mark.parametrize("cases", ["rules_test.yml", "rules_nightly_test.yml"])
def test_each_alert_fires_and_rests_as_its_cases_say(cases: str):
    promtool("test", "rules", cases)


def test_there_is_a_firing_and_a_resting_case_for_each_alert():
    cases = "".join((PROMETHEUS / name).read_text() for name in ("rules_test.yml", "rules_nightly_test.yml"))
    firing = set(re.findall(r"alertname: (\w+)(?:\n\s+|, )eval_time: \w+(?:\n\s+|, )exp_alerts", cases))
    resting = set(re.findall(r"alertname: (\w+), eval_time: \w+}", cases))
    assert len(ALERTS) == 10
    assert firing == resting == set(ALERTS)


def test_each_alert_has_severity_summary_and_a_section_of_the_runbook():
    for alert, rule in zip(ALERTS, RULES.split("- alert: ")[1:], strict=True):
        assert re.search(r"labels: {severity: (warning|critical), service: identity}", rule)
        assert re.search(r"^          summary: .{20,}$", rule, flags=re.MULTILINE)
        assert f"runbook_url: docs/runbook.md#{alert.lower()}\n" in rule
        assert f"\n## {alert}\n" in RUNBOOK


def test_blocked_sessions_are_no_alert():
    expressions = "".join(line for line in RULES.splitlines() if not line.lstrip().startswith("#"))
    assert "identity_session_retention_blocked" not in expressions
    assert "identity_session_retention_blocked" in "".join(queries())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_every_metric_that_rules_and_dashboard_ask_for_is_served_by_a_worker(command: str):
    port = free_port()
    with Worker(command, METRICS_PORT=port, SESSION_RETENTION_NIGHT_WINDOW_UTC="00:00-24:00") as worker:
        worker.until("job completed")
        served = metrics("\n".join(line for line in scrape(port).splitlines() if not line.startswith("#")))
    asked = {name for name in metrics(RULES + "\n".join(queries())) if name.startswith(f"identity_{command}_")}
    assert len(asked) > 5
    assert asked <= served


def test_the_queries_of_the_dashboard_are_valid(tmp_path: Path):
    # As rules, because promtool parses those without a server; Grafana fills in the interval.
    rules = [
        {"record": f"dashboard:{place}", "expr": query.replace("$__rate_interval", "5m")}
        for place, query in enumerate(queries())
    ]
    file = tmp_path / "dashboard.json"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


def test_the_dashboard_is_one_screen_without_overlaps():
    places = [panel["gridPos"] for panel in panels()]
    assert max(place["y"] + place["h"] for place in places) <= 24
    assert max(place["x"] + place["w"] for place in places) <= 24
    for one, two in combinations(places, 2):
        beside = one["x"] + one["w"] <= two["x"] or two["x"] + two["w"] <= one["x"]
        above = one["y"] + one["h"] <= two["y"] or two["y"] + two["h"] <= one["y"]
        assert beside or above
