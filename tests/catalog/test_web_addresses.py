"""What pages show as a link is an address of the web: nothing that a click would run."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from catalog.importing.products import GpuTable
from catalog.importing.reading import read
from catalog.web_addresses import web_address, web_addresses
from tests.catalog.test_admin import form_of, send
from tests.factories import make_gpu, make_provider, make_user

NONE = (
    "javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)", "data:text/html,x",
    "vbscript:x", "file:///etc/passwd", "ftp://example.com/x", "//example.com/x", "example.com", "https://", "https:///x",
    "https://a b/", "https://example.com/\nx", "https://exa\0mple.com/", "", "http:javascript:alert(1)", "https://[::1",
)  # fmt: skip


@pytest.mark.parametrize("address", NONE)
def test_what_is_no_address_of_the_web_is_refused_and_named(address: str) -> None:
    with pytest.raises(ValidationError) as refused:
        web_address(address)
    assert "begins with https:// or http://" in refused.value.messages[0]


@pytest.mark.parametrize("value", [{}, "https://example.com", [1], [["https://example.com"]], ["javascript:alert(1)"]])
def test_a_list_has_nothing_else(value: object) -> None:
    with pytest.raises(ValidationError):
        web_addresses(value)
    web_addresses(["https://example.com/a?b=c#d", "http://example.com"])
    web_addresses([])


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "ftp://example.com/x"])
def test_forms_and_files_refuse_it_at_its_field(client: Client, address: str) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    for url, field in (
        (f"/admin/catalog/gpu/{make_gpu().pk}/change/", "sources"),
        (f"/admin/catalog/provider/{make_provider().pk}/change/", "website"),
    ):
        errors = send(client, url, form_of(client, url) | {field: address})
        assert list(errors) == [field]
        assert "is no address of the web" in str(errors[field])
    table = GpuTable()
    content = f"slug,name,vendor,sources\nh100,H100,NVIDIA,{address}\n".replace("text/html,x", "text/html")
    plan = table.plan_table(read(content.encode(), known=table.columns(), required=table.required))
    assert [(fault.line, fault.column) for fault in plan.faults] == [(2, "sources")]
    assert "is no address of the web" in plan.faults[0].message
