"""`.env.example` names every variable that Berth reads, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_env_example_lists_exactly_the_variables_that_are_read() -> None:
    settings = (ROOT / "config" / "settings.py").read_text(encoding="utf-8")
    gunicorn = (ROOT / "config" / "gunicorn.py").read_text(encoding="utf-8")
    read = set(re.findall(r'\benv(?:\.\w+)?\(\s*"([A-Z_]+)"', settings))
    read |= set(re.findall(r'environ\.get\("([A-Z_]+)"', gunicorn))
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    listed = re.findall(r"^#? ?([A-Z_]+)=", example, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == read
