"""`manage.py check --deploy` refuses what would be unsafe to serve with."""

import pytest
from django.core.checks import registry
from django.db import connections

from rentals.checks import settings_are_safe, tenants_are_held_apart

SAFE = {
    "DEMO": False,
    "SECRET_KEY": "of-a-server-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGH",
    "HTTPS": True,
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "ACCOUNT_EMAIL_VERIFICATION": "mandatory",
    "SITE_URL": "https://berth.example",
}


@pytest.fixture
def safe(settings):
    for name, value in SAFE.items():
        setattr(settings, name, value)
    return settings


def ids(messages):
    return [message.id for message in messages]


def test_a_server_with_safe_settings_passes(safe):
    assert settings_are_safe() == []


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("DEMO", True, "rentals.E005"),
        ("SECRET_KEY", "short", "rentals.E006"),
        ("SECRET_KEY", "ab" * 40, "rentals.E006"),
        ("HTTPS", False, "rentals.E007"),
        ("REDIS_URL", "", "rentals.E008"),
        ("ACCOUNT_EMAIL_VERIFICATION", "none", "rentals.E009"),
        ("ACCOUNT_EMAIL_VERIFICATION", "optional", "rentals.E009"),
        ("SITE_URL", "http://127.0.0.1:8000", "rentals.E010"),
        ("SITE_URL", "https://localhost", "rentals.E010"),
        ("SITE_URL", "berth.example", "rentals.E010"),
        ("OUTGOING_ALLOWED", ["127.0.0.1:8123"], "rentals.E011"),
    ],
)
def test_an_unsafe_setting_is_named_with_its_remedy(safe, name, value, found):
    setattr(safe, name, value)
    messages = settings_are_safe()
    assert ids(messages) == [found]
    assert messages[0].is_serious()
    assert messages[0].hint


def test_the_checks_run_with_deploy_alone():
    ours = {settings_are_safe, tenants_are_held_apart}
    assert ours <= set(registry.registry.get_checks(include_deployment_checks=True))
    assert not ours & set(registry.registry.get_checks())


@pytest.mark.django_db
def test_the_database_of_the_suite_passes_and_sqlite_does_not():
    expected = [] if connections["default"].vendor == "postgresql" else ["rentals.E001"]
    assert ids(tenants_are_held_apart()) == expected


@pytest.mark.postgres
@pytest.mark.django_db(databases=["default", "owner"])
def test_the_owners_role_and_an_unprotected_table_are_refused(monkeypatch):
    monkeypatch.setattr("rentals.checks.connection", connections["owner"])
    with connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE rentals_order NO FORCE ROW LEVEL SECURITY")
    messages = tenants_are_held_apart()
    assert ids(messages) == ["rentals.E002", "rentals.E003"]
    assert "it owns" in messages[0].msg
    assert "rentals_order" in messages[1].msg


@pytest.mark.postgres
@pytest.mark.django_db(databases=["default", "owner"])
def test_a_database_that_cannot_be_asked_is_an_error_of_its_own(monkeypatch):
    elsewhere = connections["owner"].copy("elsewhere")
    elsewhere.settings_dict = {**elsewhere.settings_dict, "NAME": "there-is-none"}
    monkeypatch.setattr("rentals.checks.connection", elsewhere)
    assert ids(tenants_are_held_apart()) == ["rentals.E004"]
