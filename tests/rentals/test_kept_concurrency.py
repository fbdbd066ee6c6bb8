"""A request that comes several times at once makes what an organization keeps once, in real transactions."""

from functools import partial

import pytest

from tests import api_scene
from tests.factories import make_ai_model, make_api_key, make_organization
from tests.rentals.calls import get, post
from tests.rentals.test_concurrency import at_once

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("operation", api_scene.MADE)
def test_four_at_once_make_one(operation: str) -> None:
    make_ai_model()
    key = make_api_key(make_organization("acme"))
    path, body = api_scene.MADE[operation]
    statuses = sorted(answer.status_code for answer in at_once([partial(post, path, key, body)] * 4))
    assert statuses == ([201, 409, 409, 409] if path == "webhooks" else [200, 200, 200, 201])
    assert len(get(path, key).json()["results"]) == 1
