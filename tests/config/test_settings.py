"""What the settings are without being told anything, and what they refuse."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).resolve().parents[2]
VALUES = "import config.settings as s; print(s.DEBUG, s.HTTPS, s.SESSION_COOKIE_SECURE, s.ACCOUNT_EMAIL_VERIFICATION)"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process with this environment and no other; a `.env` of the checkout is read all the same."""
    environment = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, cwd="/", capture_output=True, text=True)


def test_outside_the_demo_there_is_no_default_secret_key() -> None:
    if (ROOT / ".env").exists():
        pytest.skip("a .env of this checkout names a key")
    result = python(VALUES)
    assert result.returncode != 0
    assert "Set the SECRET_KEY environment variable" in result.stderr


def test_the_default_is_the_safe_one() -> None:
    if (ROOT / ".env").exists():
        pytest.skip("a .env of this checkout has a say")
    assert python(VALUES, SECRET_KEY="x").stdout.split() == ["False", "True", "True", "mandatory"]


def test_the_demo_needs_nothing_and_keeps_debug_off() -> None:
    assert python(VALUES, DEMO="1").stdout.split() == ["False", "False", "False", "none"]


@pytest.mark.postgres
@pytest.mark.django_db
def test_production_passes_the_deployment_checks() -> None:
    server = os.environ["DATABASE_URL"].rsplit("/", 1)[0]
    environment = {
        "PATH": os.defpath,
        "SECRET_KEY": "k" * 20 + "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGH",
        "DATABASE_URL": f"{server}/{settings.DATABASES['default']['NAME']}",
        "REDIS_URL": "redis://127.0.0.1:6379/0",
        "SITE_URL": "https://berth.example",
        "DEMO": "0",
        "DEBUG": "0",
        "HTTPS": "1",
    }
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_demo_command_refuses_outside_demo_mode(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    environment = {"PATH": os.defpath, "SECRET_KEY": "x", "DEMO": "0", "DATABASE_URL": f"sqlite:///{database}"}
    command = [sys.executable, "manage.py", "demo", "--prepare"]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode != 0
    assert "demo mode alone" in result.stderr
    assert not database.exists()
