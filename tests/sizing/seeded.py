"""A few of the seeded models, because most tests need one or two and not all of them."""

import json

from sizing import seeding
from sizing.models import AiModel

_ROWS = {row["slug"]: row for row in json.loads(seeding.MODELS.read_text(encoding="utf-8"))}


def seed(*slugs: str) -> None:
    """Put these models into the database, as the seed file has them."""
    for slug in slugs:
        AiModel.objects.create(**_ROWS[slug])
