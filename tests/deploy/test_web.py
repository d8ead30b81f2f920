"""The /metrics of the web process: how it serves and what it asks the database, and nothing of the jobs."""

import pytest
from django.test import Client

from tests.kit.workers import samples

pytestmark = pytest.mark.django_db


def test_the_web_process_serves_its_requests_and_its_database_and_no_metric_of_a_job(client: Client):
    client.get("/admin/login/")
    text = client.get("/metrics").content.decode()
    found = samples(text, prefix="")
    names = {name for name, _ in found}
    assert "django_http_requests_before_middlewares_total" in names
    assert "django_db_execute_total" in names
    assert not any(name.startswith("identity_") for name in names)
