"""A name that shows nothing is refused wherever somebody types one."""

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from catalog.checks import machine_problems
from catalog.models import Gpu, GpuAlias, Machine, Option, PlaceAlias, Provider
from rentals.errors import InvalidSshKey
from rentals.forms import OrganizationNameForm, printable
from rentals.ssh_keys import read_key
from sizing.calculator.forms import LineField
from sizing.own_forms import OwnModelForm
from tests.catalog.test_feed_texts import SEEN_AS_NOTHING

SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
NOTHING = [text for text in SEEN_AS_NOTHING if text.strip()]


@pytest.mark.parametrize("text", [*NOTHING, "A\u3164B", "A\u202eB"], ids=ascii)
def test_a_name_that_shows_nothing_or_hides_something_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        printable(text)
    with pytest.raises(ValidationError):
        LineField(label="Name", most=80, missing="Give it a name.").clean(text)
    with pytest.raises(InvalidSshKey, match="Name the key"):
        read_key(SSH_KEY, name=text)
    assert "own_name" in OwnModelForm({"own_name": text}).errors
    assert "organization_name" in OrganizationNameForm({"organization_name": text * 3}).errors
    assert "name" in [problem.field for problem in machine_problems({"name": text, "hourly_usd": Decimal(1)})]


@pytest.mark.parametrize("model", [Gpu, GpuAlias, Machine, Option, PlaceAlias, Provider])
@pytest.mark.parametrize("text", NOTHING, ids=ascii)
def test_no_row_of_the_catalog_has_a_name_that_shows_nothing(model: type, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        model(name=text).clean_fields()
    assert "Write one line of plain text that can be seen." in refused.value.message_dict["name"]
