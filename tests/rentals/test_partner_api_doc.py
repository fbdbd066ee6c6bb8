"""The first order of the manual works as it is written: its commands and its program run against a live server."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from config.api_errors import TITLES
from rentals.models import Order, SshKey, WebhookDelivery
from tests import api_scene
from tests.factories import make_api_key
from tests.rentals.calls import get

PAGE = Path(__file__).parents[2] / "docs" / "partner-api.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)


def run(command: list[str], folder: Path, site: str, key: str) -> str:
    environment = {"PATH": os.environ["PATH"], "BERTH": site, "BERTH_KEY": key}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.postgres
def test_the_manual_s_commands_and_program_place_orders(live_server: Any, acme: Any, tmp_path: Path) -> None:
    api_scene.build(acme)
    key = make_api_key(acme).text
    told = run(["bash", "-euo", "pipefail", "-c", "\n".join(blocks("bash"))], tmp_path, live_server.url, key)
    order = Order.objects.get()
    assert str(order.pk) in told
    assert '"state": "running"' in told.replace('":"', '": "')
    assert SshKey.objects.get().comment == "ada@laptop"
    assert WebhookDelivery.objects.filter(event__kind="webhook.test", endpoint__organization=acme).count() == 1
    (program,) = blocks("python")
    told = run([sys.executable, "-c", program], tmp_path, live_server.url, key)
    assert told.startswith("19.55 GiB, 1 machines")
    assert Order.objects.count() == 2
    assert str(Order.objects.exclude(pk=order.pk).get().pk) in told


def test_every_operation_that_the_manual_names_is_one(db: None) -> None:
    paths = get("schema").json()["paths"]
    known = {
        f"{method.upper()} {path.removeprefix('/api/v1')}" for path, methods in paths.items() for method in methods
    }
    known = {re.sub(r"\{\w+\}", "{}", one) for one in known}
    named = re.findall(r"`((?:GET|POST|PATCH|DELETE) /[^`?]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) >= 10
    assert {re.sub(r"\{\w+\}", "{}", one) for one in named} <= known


def test_every_code_that_the_manual_names_is_one(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"\b4\d\d `(\w+)`", text)) <= set(TITLES)
    assert len(blocks("bash")) == 5
