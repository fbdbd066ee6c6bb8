"""What README and CONTRIBUTING point at is there."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
# What is made by those who run Berth, or is a name of an object of theirs.
MADE = re.compile(r"^(\.venv|\.data|staticfiles)/|[<>*{}]")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_it_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    links = {target.partition("#")[0] for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text)} - {""}
    assert not {link for link in links if not ((ROOT / page).parent / link).exists()}
    named = re.findall(r"`((?:\.ci|catalog|config|docs|rentals|sizing|static|templates|tests)/[^`\s]*)`", text)
    assert not {path for path in named if not MADE.search(path) and not (ROOT / path).exists()}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_it_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    assert set(re.findall(r"manage\.py ([a-z_]+)", text)) <= set(get_commands())
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([a-z-]+)", text)) | set(re.findall(r"^make ([a-z-]+)", text, re.M)) <= targets
