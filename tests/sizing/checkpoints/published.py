"""The configurations of the importer's tests, and what is expected of them."""

import json
from pathlib import Path
from typing import Any

CONFIGS = Path(__file__).parent / "configs"
SEEDS = Path(__file__).parents[3] / "sizing" / "seeds" / "models.json"


def configs(name: str) -> dict[str, Any]:
    return json.loads((CONFIGS / name).read_text())


def seeds() -> dict[str, dict[str, Any]]:
    """The language models of the catalog."""
    models = json.loads(SEEDS.read_text())
    return {model["slug"]: model for model in models if model["kind"] == "language"}


def with_fields(config: dict[str, Any], **fields: Any) -> bytes:
    """A configuration with other values; `...` takes a field out."""
    changed = {**config, **fields}
    return json.dumps({name: value for name, value in changed.items() if value is not ...}).encode()
