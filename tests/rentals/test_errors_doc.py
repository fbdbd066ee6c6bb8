"""The page of error codes: written from the table, and the table has every code that the code gives."""

import ast
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from rentals import errors
from rentals.api.problems import FIELD_CODES, PAGE, PROBLEMS, page
from tests.rentals.calls import get

ROOT = PAGE.parent.parent
# Of pages alone: no operation of the API gives them.
PAGES_ONLY = {
    "last_owner", "already_member", "invitation_over", "too_many_invitations", "outside_countries",
}  # fmt: skip
PAGES = {"admin.py", "own_forms.py", "publishing.py"}
READERS = ("sizing", "catalog/api_queries.py", "rentals/api")


def test_the_committed_page_is_the_one_that_the_table_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run manage.py write_errors"
    changed = tmp_path / "errors.md"
    changed.write_text("another", encoding="utf-8")
    monkeypatch.setattr("rentals.management.commands.write_errors.PAGE", changed)
    with pytest.raises(CommandError, match="write_errors"):
        call_command("write_errors", "--check")
    call_command("write_errors")
    assert changed.read_text(encoding="utf-8") == page()


def test_every_code_of_a_refusal_is_in_the_table() -> None:
    known = {problem.code for problem in PROBLEMS}
    assert len(known) == len(PROBLEMS)
    given = {each.code for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "code")}
    assert given - PAGES_ONLY <= known


def test_every_code_of_a_field_is_in_the_table() -> None:
    named = [[ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py") for name in READERS]
    files = [path for paths in named for path in paths if path.name not in PAGES]
    given = {code for path in files for code in _codes(path)}
    assert {"unknown_field", "illegal_split", "other_task", "repeated"} <= given
    assert given <= {one.code for one in FIELD_CODES}


def test_the_table_can_be_read_over_the_api(db: None) -> None:
    found = get("errors").json()
    assert [one["code"] for one in found["errors"]] == [problem.code for problem in PROBLEMS]
    assert all(one["meaning"] and one["remedy"] for one in found["errors"])


def _codes(path: Path) -> set[str]:
    """The literal codes given to `InputError`, `ValidationError` and `refuse`."""
    places = {"InputError": 1, "ValidationError": 1, "ErrorDetail": 1, "refuse": 2}
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = places.get(name)
            if place is not None and len(node.args) > place and isinstance(node.args[place], ast.Constant):
                found.add(node.args[place].value)
    return found
