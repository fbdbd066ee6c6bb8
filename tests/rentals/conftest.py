import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from catalog.models import Machine
from rentals.models import ApiKey, WebhookEndpoint
from tests.factories import make_api_key, make_endpoint, make_machine
from tests.rentals.receivers import Receiver, receiving


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def shop(db: None) -> Machine:
    return make_machine(price_7_days_usd=Decimal("110.00"), lots=2)


@pytest.fixture
def key(acme: Any) -> ApiKey:
    return make_api_key(acme, name="batch")


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    with receiving(settings) as receiver:
        yield receiver


@pytest.fixture
def endpoint(acme: Any, receiver: Receiver, now: datetime) -> WebhookEndpoint:
    """An endpoint of acme that is told everything, at the receiver."""
    return make_endpoint(acme, receiver.url, now=now - timedelta(days=1))


@pytest.fixture(scope="session")
def recipe() -> Callable[..., None]:
    """The function `verify` of the manual, as a reader copies it."""
    manual = Path(__file__).parents[2] / "docs" / "webhooks.md"
    (code,) = re.findall(r"```python\n(.*?)```", manual.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return names["verify"]
