"""One machine: all its facts, its prices, its limits, and the way to order it."""

import html
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from catalog.models import FeedAbsence, Machine
from catalog.units import GB, MIB
from catalog.wording import COMMUNITY_SENTENCE
from tests.factories import make_gpu, make_machine, make_provider


def page(client: Client, machine: Machine) -> str:
    response = client.get(f"/catalog/machines/{machine.id}/")
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.django_db
def test_a_secure_machine_with_all_its_packages(client: Client) -> None:
    machine = make_machine(
        gpu=make_gpu(name="RTX 4090", memory_bandwidth_gb_s=Decimal("1010.0"), sources=["https://gpu.example/4090"]),
        gpu_memory_bytes=24_564 * MIB,
        memory_unit="MiB",
        price_3_days_usd=Decimal("47.14"),
        lots=4,
        free_lots=3,
    )
    text = page(client, machine)
    for said in (
        "24,564 MiB measured (data center) = 23.99 GiB counted",
        "The memory figure was measured by the data center",
        "3 of 4 lots free",
        "Set by the operator",
        "4 cards in all",
        "$47.14",
        "$0.6547/h",
        "$110.00",
        "$0.6548/h",
        "$471.43",
        "(168 hours)",
        "Launch by workload",
        "Nothing is reserved until you confirm on the next page.",
        "https://gpu.example/4090",
    ):
        assert said in text, said
    assert COMMUNITY_SENTENCE not in text


@pytest.mark.django_db
def test_launch_leads_to_the_review_with_machine_term_and_lots(client: Client) -> None:
    machine = make_machine(price_3_days_usd=Decimal("47.14"), lots=4, free_lots=3)
    text = page(client, machine)
    form = text.split('action="/orders/review/"')[1].split("</form>")[0]
    assert f'name="machine" value="{machine.id}"' in form
    assert re.findall(r'<option value="(\d+)"', form) == ["3", "7", "30"]
    assert re.search(r'<option value="7" selected>', form)
    assert 'name="lots" value="1" min="1" max="3"' in form
    assert re.search(r"<button[^>]*>Launch</button>", form)


@pytest.mark.django_db
def test_a_capped_machine_offers_only_the_terms_it_is_sold_for(client: Client) -> None:
    text = page(client, make_machine(max_term_days=7))
    assert "It is let for at most 7 days at a time." in text
    assert re.findall(r'<option value="(\d+)"', text) == ["7"]
    text = page(client, make_machine(max_term_days=2))
    assert "It is sold for no term now." in text
    assert 'action="/orders/review/"' not in text


@pytest.mark.django_db
def test_a_community_machine_says_who_can_read_the_memory(client: Client) -> None:
    text = page(client, make_machine(tier="community", interruptible=True, country=None))
    assert "Community machines run on the provider&#x27;s own hardware" in text
    assert "/help/secure-and-community/" in text
    assert "reported by the provider, not verified" in text
    assert "It is interruptible" in text
    assert "Location unknown" in text


@pytest.mark.django_db
def test_unknown_memory_is_said_and_never_none(client: Client) -> None:
    text = page(client, make_machine(gpu_memory_bytes=None))
    assert "Memory unknown" in text
    assert "never recommended" in text
    assert "None" not in text


@pytest.mark.django_db
def test_a_datasheet_is_read_as_decimal_gb(client: Client) -> None:
    text = page(client, make_machine(gpu_memory_bytes=24 * GB, memory_unit="GB", memory_source="datasheet"))
    assert "24 GB nominal (datasheet) = 22.35 GiB counted" in text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "said"), [({"free_lots": 0}, "Out of stock"), ({"online": False}, "Off-line")], ids=str
)
def test_what_cannot_be_had_now_has_no_launch_button(client: Client, fields: dict[str, Any], said: str) -> None:
    text = page(client, make_machine(**fields))
    assert f"{said}: it cannot be ordered now." in text
    assert 'action="/orders/review/"' not in text


@pytest.mark.django_db
def test_a_machine_of_a_feed_says_when_it_was_confirmed(client: Client) -> None:
    now = timezone.now()
    feed = {"feed_url": "https://feed.example/", "feed_format": "native"}
    fresh = make_provider(refreshed_at=now - timedelta(seconds=130), **feed)
    assert "Seen 2 min ago" in page(client, make_machine(provider=fresh))
    gone = page(client, make_machine(provider=fresh, online=False))
    assert "Not offered by its provider's list, checked 2 min ago" in html.unescape(gone)
    stale = page(client, make_machine(provider=make_provider(refreshed_at=now - timedelta(minutes=6), **feed)))
    assert "Not confirmed lately" in stale
    assert "Seen 6 min ago" in stale
    never = page(client, make_machine(provider=make_provider(**feed)))
    assert "Its provider's list was never checked" in html.unescape(never)
    assert "Set by the operator" in page(client, make_machine())


@pytest.mark.django_db
def test_the_catalog_says_when_each_list_was_checked(client: Client) -> None:
    now = timezone.now()
    feed = {"feed_url": "https://feed.example/", "feed_format": "native"}
    make_machine(provider=make_provider("aspen", refreshed_at=now - timedelta(minutes=3), **feed))
    make_machine(provider=make_provider("birch", **feed), online=False)
    make_machine()
    text = html.unescape(client.get("/catalog/").content.decode())
    assert "Providers' lists: Aspen checked 3 min ago; Birch never checked." in text
    assert "Seen 3 min ago" in text
    assert text.count("Set by the operator") == 1


@pytest.mark.django_db
def test_a_machine_under_rent_that_its_list_left_out_is_not_confirmed(client: Client) -> None:
    now = timezone.now()
    provider = make_provider(refreshed_at=now, feed_url="https://feed.example/", feed_format="native")
    machine = make_machine(provider=provider, lots=3, free_lots=2)
    FeedAbsence.objects.create(machine=machine, since=now)
    text = html.unescape(page(client, machine))
    assert "Not confirmed lately: it cannot be ordered now." in text
    assert "Not offered by its provider's list" in text
    assert not Machine.objects.available(now=now).exists()


@pytest.mark.django_db
@pytest.mark.parametrize("number", ["0", "999999", "9" * 30, "9223372036854775808"])
def test_a_machine_that_is_not_there_is_404(client: Client, number: str) -> None:
    assert client.get(f"/catalog/machines/{number}/").status_code == 404


@pytest.mark.django_db
def test_secure_and_community_says_what_each_tier_is(client: Client) -> None:
    text = client.get("/help/secure-and-community/").content.decode()
    for said in (
        "Community machines run on the provider&#x27;s own hardware; the provider can read the memory of the session.",
        "No machine is recommended on an assumption.",
        "Speed is not estimated",
        "does not look into your files",
        "not a guarantee",
        "EU means the 27 member states",
    ):
        assert said in text, said


@pytest.mark.django_db
def test_the_glossary_has_its_twelve_words_in_their_order(client: Client) -> None:
    text = client.get("/glossary/").content.decode()
    assert re.findall(r"<dt[^>]*>(.*?)</dt>", text) == [
        "VRAM",
        "KV cache",
        "Quantization",
        "Tensor parallelism",
        "DistributedDataParallel (DDP)",
        "Fully Sharded Data Parallel (FSDP)",
        "CUDA",
        "ROCm",
        "Training checkpoint",
        "Variational autoencoder (VAE)",
        "Fixed rental term",
        "Idempotency key",
    ]
    assert "They do not guarantee" in text
