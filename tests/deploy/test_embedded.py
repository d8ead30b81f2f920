"""The PostgreSQL that comes with the project: who counts as its user."""

import json
import os
import subprocess
import sys
from pathlib import Path

from local.embedded.base import forget_the_dead


def test_a_process_that_was_killed_is_no_user_of_the_server_any_more(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    users = tmp_path / "users.json"
    users.write_text(json.dumps([gone.pid, os.getpid()]))
    forget_the_dead(users)
    assert json.loads(users.read_text()) == [os.getpid()]


def test_a_new_server_has_no_list_of_users_yet(tmp_path: Path) -> None:
    forget_the_dead(tmp_path / "users.json")
    assert not list(tmp_path.iterdir())
