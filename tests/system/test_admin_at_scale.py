"""The administration of a hundred thousand machines answers, and twenty thousand come in by a file, all or not."""

import re
import time
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from catalog.models import Machine, Provider
from tests.factories import make_gpu, make_machine, make_provider, make_user

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

MACHINES = "/admin/catalog/machine/"
MANY = 100_000
ROWS = 20_000


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    return client


def fill(number: int) -> Machine:
    """Machines of a hundred providers, a tenth of them in a country that is unknown."""
    gpu = make_gpu("rtx-4090", name="RTX 4090", memory_gb_nominal=24)
    first = make_machine(gpu=gpu, name="Machine 0", provider=make_provider("p0"))
    Provider.objects.bulk_create(Provider(slug=f"p{n}", name=f"Provider {n}") for n in range(1, 100))
    providers = list(Provider.objects.order_by("id"))
    facts = {
        one.attname: getattr(first, one.attname)
        for one in Machine._meta.concrete_fields
        if one.name not in ("id", "name", "provider", "country")
    }
    rows = (
        Machine(**facts, name=f"Machine {n}", provider=providers[n % 100], country=None if n % 10 == 0 else "DE")
        for n in range(1, number)
    )
    Machine.objects.bulk_create(rows, batch_size=5000)
    return first


def test_lists_searches_filters_and_forms_answer_with_a_hundred_thousand_machines(staff: Client) -> None:
    machine = fill(MANY)
    pages = {
        "list": "",
        "search": "?q=machine+99999",
        "search by GPU and provider": "?q=4090+%22Provider+42%22",
        "problems": "?problems=any",
        "provider": f"?provider={machine.provider_id}&tier=secure",
        "country and memory": "?country=unknown&memory_source=data_center",
        "GPU": f"?gpu={machine.gpu_id}",
        "last page": "?p=1999",
        "by price": "?o=12.-4",
        "form": f"{machine.pk}/change/",
        "history": f"{machine.pk}/history/",
        "new": "add/",
    }
    for name, path in pages.items():
        began = time.perf_counter()
        with CaptureQueriesContext(connection) as caught:
            response = staff.get(MACHINES + path)
        assert response.status_code == 200, name
        assert len(caught) <= 20, name
        assert len(response.content) < 300_000, name
        print(f"{name}: {len(caught)} queries, {time.perf_counter() - began:.2f} s")
    assert staff.get(f"{MACHINES}?q=machine+99999").context["cl"].result_count == 1
    assert staff.get(f"{MACHINES}?country=unknown").context["cl"].result_count == MANY // 10 - 1
    for url in ("/admin/catalog/provider/", "/admin/catalog/gpu/", "/admin/rentals/order/add/"):
        response = staff.get(url)
        assert response.status_code == 200
        assert len(response.content) < 300_000
    asked = {"app_label": "rentals", "model_name": "order", "field_name": "machine", "term": "99999"}
    assert len(staff.get("/admin/autocomplete/", asked).json()["results"]) == 1
    for url in (f"provider/{machine.provider_id}", f"gpu/{machine.gpu_id}"):
        response = staff.get(f"/admin/catalog/{url}/delete/")
        assert len(response.content) < 300_000
        assert " machines" in response.content.decode()
    began = time.perf_counter()
    lines = sum(chunk.count(b"\n") for chunk in staff.get(f"{MACHINES}export.csv").streaming_content)
    assert lines == MANY + 1
    print(f"export: {time.perf_counter() - began:.1f} s")


def upload(staff: Client, content: str) -> Any:
    file = SimpleUploadedFile("machines.csv", content.encode())
    return staff.post(f"{MACHINES}import/", {"file": file, "reason": "A new hall"})


def test_twenty_thousand_rows_are_looked_at_and_come_in_and_one_wrong_row_lets_none_in(staff: Client) -> None:
    make_gpu("rtx-4090")
    make_provider("north")
    header = "provider,name,gpu,tier,country,memory,memory_unit,memory_source,lots,hourly_usd\n"
    rows = [f"north,M{n},rtx-4090,secure,DE,24,GB,datasheet,3,0.65\n" for n in range(ROWS)]
    wrong = [*rows[:14_999], rows[14_999].replace("secure", "gold"), *rows[15_000:]]
    page = upload(staff, header + "".join(wrong)).content.decode()
    assert ">15001<" in page
    assert "must be one of secure, community" in page
    assert not Machine.objects.exists()

    began = time.perf_counter()
    with CaptureQueriesContext(connection) as caught:
        page = upload(staff, header + "".join(rows)).content.decode()
    print(f"preview: {len(caught)} queries, {time.perf_counter() - began:.1f} s")
    assert "20,000 new" in page
    assert len(page) < 500_000
    assert len(caught) < 200
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key
    began = time.perf_counter()
    with CaptureQueriesContext(connection) as caught:
        assert staff.post(f"{MACHINES}import/", {"key": key[1]}).status_code == 302
    print(f"apply: {len(caught)} queries, {time.perf_counter() - began:.1f} s")
    assert len(caught) < ROWS / 10
    assert Machine.objects.count() == Machine.history.count() == ROWS

    assert "The file changes nothing: 20,000 rows" in upload(staff, header + "".join(rows)).content.decode()
    page = upload(staff, header + "".join(rows).replace("DE", "FR").replace(",3,", ",4,")).content.decode()
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key
    Machine.objects.filter(name="M7").update(free_lots=1)
    began = time.perf_counter()
    with CaptureQueriesContext(connection) as caught:
        assert staff.post(f"{MACHINES}import/", {"key": key[1]}).status_code == 302
    print(f"change: {len(caught)} queries, {time.perf_counter() - began:.1f} s")
    assert len(caught) < ROWS / 10
    assert not Machine.objects.exclude(country="FR", lots=4).exists()
    assert Machine.objects.get(name="M7").free_lots == 2
    assert Machine.history.count() == 2 * ROWS
