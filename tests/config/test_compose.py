"""The production shape, read: no engine runs it here, tests/system runs its commands as processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OURS = ("migrate", "web", "worker", "beat")


def test_the_shape_is_complete() -> None:
    assert set(SERVICES) == {"database", "redis", *OURS}
    assert set(COMPOSE["volumes"]) == {"database"}
    assert SERVICES["database"]["volumes"] == ["database:/var/lib/postgresql/data"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_everything_that_stays_says_whether_it_is_well_and_is_started_again(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_whatever_serves_waits_for_the_migrations_and_connects_as_the_role_that_owns_nothing(name: str) -> None:
    service = SERVICES[name]
    assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert service["depends_on"]["redis"] == {"condition": "service_healthy"}
    assert "DATABASE_OWNER_URL" not in service["environment"]
    assert service["environment"]["DATABASE_URL"].startswith("postgres://berth:")


def test_migrations_alone_know_the_owner_and_run_once() -> None:
    migrate = SERVICES["migrate"]
    assert migrate["environment"]["DATABASE_OWNER_URL"].startswith("postgres://berth_owner:")
    assert migrate["restart"] == "no"
    assert "manage.py migrate --no-input" in migrate["command"]


@pytest.mark.parametrize("name", OURS)
def test_each_variable_is_one_that_berth_reads(name: str) -> None:
    listed = re.findall(r"^#? ?([A-Z_]+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(SERVICES[name]["environment"]) <= set(listed)


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_has_a_default(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if re.search(r"KEY|PASSWORD|URL", variable) and "://" not in str(value):
            assert re.fullmatch(r"\$\{\w+(:\?.+|:-)?\}", value), variable
        for password in re.findall(r"://\w+:([^@]+)@", str(value)):
            assert re.fullmatch(r"\$\{\w+(:\?.+)?\}", password), variable


@pytest.mark.parametrize("name", OURS)
def test_processes_of_ours_have_no_rights_that_they_do_not_need(name: str) -> None:
    assert SERVICES[name]["build"] == "."
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "user", "volumes"} & set(SERVICES[name])


def test_the_image_serves_as_a_user_who_owns_nothing() -> None:
    users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert users
    assert users[-1] not in ("root", "0")
    # What the last user may write to: nothing of the image but /tmp.
    assert "chown" not in DOCKERFILE
    assert DOCKERFILE.index("USER ") < DOCKERFILE.index("\nCMD ")
    assert "--require-hashes" in DOCKERFILE


def test_only_the_web_is_reached_from_outside_and_from_this_host_alone() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    assert SERVICES["web"]["ports"] == ["127.0.0.1:8000:8000"]


def test_the_context_of_the_image_holds_no_secrets_and_no_rubbish() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".env", ".git", ".venv", ".data"} <= set(ignored)
