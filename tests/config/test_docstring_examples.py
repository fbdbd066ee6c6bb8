"""Examples in docstrings are run: they are read as promises."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_module_with_an_example_is_among_the_tests() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    run = [ROOT / path for path in options["testpaths"]]
    apps = (path for app in ("catalog", "config", "rentals", "sizing") for path in (ROOT / app).rglob("*.py"))
    examples = [path for path in apps if "\n    >>> " in path.read_text()]
    assert examples
    forgotten = [path for path in examples if not any(path.is_relative_to(each) for each in run)]
    assert not forgotten, "Name them in testpaths of pyproject.toml."
