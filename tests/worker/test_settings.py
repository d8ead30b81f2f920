"""Settings: a wrong variable of the process is one line and exit 2, and what is written is taken as it is."""

import re
import subprocess
import sys

import pytest

from settings import base
from tests.kit.processes import ROOT, environment, manage

URL = "postgres://user:password@host:port/name, or postgres://user:password@:port//socket/folder/name"
PRODUCTION = {
    "DJANGO_SETTINGS_MODULE": "settings.production",
    "DATABASE_URL": "postgres://u:$ecret$1@db.invalid/identity",
    "DJANGO_SECRET_KEY": "$a&b%",
    "DJANGO_ALLOWED_HOSTS": "id.example.org",
}


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"DATABASE_URL": ""}, f"DATABASE_URL is empty: give {URL}."),
        ({"DATABASE_URL": "mysql://u:hidden@h/d"}, f"DATABASE_URL is refused: give {URL}."),
        ({"DATABASE_URL": "postgres://u:hidden@h"}, f"DATABASE_URL is refused: give {URL}."),
        ({"DATABASE_URL": "postgres://u:hidden@h:port/d"}, f"DATABASE_URL is refused: give {URL}."),
        ({"DATABASE_URL": "$DATABASE_URL"}, f"DATABASE_URL is refused: give {URL}."),
        (
            {"DATABASE_SCHEMA": "a,public"},
            "DATABASE_SCHEMA='a,public' is refused: give a schema name of lower-case letters, digits and underscores.",
        ),
        (
            {"DATABASE_SCHEMA_OPTION": "maybe"},
            "DATABASE_SCHEMA_OPTION='maybe' is refused: give true or false (also on, off, 1, 0).",
        ),
        ({"METRICS_PORT": "99999"}, "METRICS_PORT='99999' is refused: give a port number from 1 to 65535."),
        (
            {"METRICS_PORT": "$METRICS_PORT"},
            "METRICS_PORT='$METRICS_PORT' is refused: give a port number from 1 to 65535.",
        ),
        ({"METRICS_ADDRESS": "here"}, "METRICS_ADDRESS='here' is refused: give an IP address such as 127.0.0.1."),
        (
            {"PROMETHEUS_PUSHGATEWAY_URL": "gateway"},
            "PROMETHEUS_PUSHGATEWAY_URL is refused: give an address such as http://gateway:9091.",
        ),
        ({"METRICS_TEXTFILE": ""}, "METRICS_TEXTFILE='' is refused: give the path of a file."),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL='loud' is refused: give one of DEBUG, INFO, WARNING, ERROR, CRITICAL."),
        ({"DJANGO_DEBUG": "enabled"}, "DJANGO_DEBUG='enabled' is refused: give true or false (also on, off, 1, 0)."),
        ({"DJANGO_SECRET_KEY": ""}, "DJANGO_SECRET_KEY is empty: give a long random text."),
        (
            {**PRODUCTION, "DJANGO_ALLOWED_HOSTS": ""},
            "DJANGO_ALLOWED_HOSTS='' is refused: give host names separated by commas, such as id.example.org.",
        ),
    ],
)
def test_a_wrong_variable_is_one_line_and_exit_2(variables: dict[str, str], line: str) -> None:
    ended = manage("expire_sessions", **variables)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"{line}\n")


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        (
            "DATABASE_URL",
            "DATABASE_URL is not set: settings.production needs postgres://user:password@host/name.",
        ),
        ("DJANGO_SECRET_KEY", "DJANGO_SECRET_KEY is not set: settings.production needs a long random text."),
        (
            "DJANGO_ALLOWED_HOSTS",
            "DJANGO_ALLOWED_HOSTS is not set: settings.production needs host names separated by commas.",
        ),
    ],
)
def test_production_says_what_is_missing(missing: str, line: str) -> None:
    ended = manage("expire_sessions", **{name: value for name, value in PRODUCTION.items() if name != missing})
    assert (ended.returncode, ended.stderr) == (2, f"{line}\n")


def test_production_passes_djangos_own_deployment_checks() -> None:
    ended = manage("check", "--deploy", **PRODUCTION | {"DJANGO_SECRET_KEY": "$a&b%" + "0123456789abcdefg" * 4})
    assert ended.returncode == 0
    # Whether subdomains share the promise of HTTPS is for whoever owns the domain.
    assert set(re.findall(r"\((\w+\.[WE]\d+)\)", ended.stderr)) <= {"security.W005", "security.W021"}


def test_a_dollar_in_a_secret_is_a_dollar() -> None:
    program = "from settings import production as s; print(s.SECRET_KEY, s.DATABASES['default']['PASSWORD'])"
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(**PRODUCTION), capture_output=True, text=True
    )
    assert (printed.stdout, printed.stderr) == ("$a&b% $ecret$1\n", "")


def test_help_and_check_start_no_server_and_need_none() -> None:
    for arguments in (["expire_sessions", "--help"], ["session_retention", "--help"], ["check"]):
        assert manage(*arguments, **PRODUCTION).returncode == 0


def test_what_the_url_says_beside_the_schema_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "sslmode=require&connect_timeout=3&keepalives_idle=7&options=-c%20work_mem%3D4MB"
    monkeypatch.setenv("DATABASE_URL", f"postgres://u:p%2Fw@h:6000/d?{query}")
    entry = base.on_schema(base.database() or {})
    assert (entry["HOST"], entry["PORT"], entry["USER"], entry["PASSWORD"]) == ("h", 6000, "u", "p/w")
    given = {"sslmode": "require", "connect_timeout": 3, "keepalives_idle": 7}
    assert given.items() <= entry["OPTIONS"].items()
    assert entry["OPTIONS"]["options"] == "-c work_mem=4MB -c search_path=identity"


def test_a_socket_folder_is_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@:5433//run/postgresql/d")
    entry = base.database() or {}
    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == ("/run/postgresql", 5433, "d")
