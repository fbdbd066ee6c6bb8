from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from catalog.models import Machine
from rentals.models import ApiKey
from tests.factories import make_api_key, make_machine


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def shop(db: None) -> Machine:
    return make_machine(price_7_days_usd=Decimal("110.00"), lots=2)


@pytest.fixture
def key(acme: Any) -> ApiKey:
    return make_api_key(acme, name="batch")
