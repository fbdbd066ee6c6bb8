from datetime import datetime

import pytest
from django.utils import timezone


@pytest.fixture
def now() -> datetime:
    return timezone.now()
