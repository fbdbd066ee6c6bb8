"""One spelling of a word on every page."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_an_email_is_spelled_one_way():
    files = [
        path
        for folder in ("templates", "rentals", "config", "sizing", "catalog")
        for path in (ROOT / folder).rglob("*")
    ]
    told = [path for path in files if path.suffix in (".html", ".txt", ".py")]
    assert len(told) > 100
    assert not [path.name for path in told if re.search(r"\be-mail", path.read_text(), re.IGNORECASE)]
