"""An order keeps the sizing it was bought for, whatever the task."""

from html import unescape
from typing import Any

import pytest

from rentals.models import Order
from sizing.forms import workload_from
from tests.factories import make_machine
from tests.rentals.test_review_page import REVIEW, confirm, fields
from tests.sizing.seeded import seed

TASKS = [
    (
        {"task": "fine_tune", "model": "llama-3.1-8b", "precision_bits": "4", "target_modules": ["q", "v"]},
        "Fine-tuning Llama 3.1 8B, QLoRA on 4 bits, rank 16 on q, v, 2,048 tokens × batch size 1 needs",
        "phases to check",
    ),
    ({"task": "image", "model": "flux.1-dev"}, "FLUX.1 [dev], one image at native resolution needs 38.71 GiB", "VAE"),
    (
        {"task": "run", "model": "whisper-large-v3", "streams": "2"},
        "Whisper large-v3, 16 bits, 2 audio streams at once needs 5.16 GiB",
        "Implementations of speech recognition differ",
    ),
    (
        {"task": "notebook", "gpu_memory_gb": "24"},
        "A notebook, stated with 24 GB of GPU memory, needs 22.35 GiB",
        "nothing was computed or added",
    ),
]


@pytest.mark.parametrize(("workload", "headline", "limit"), TASKS, ids=["fine_tune", "image", "speech", "notebook"])
def test_an_order_of_any_task_keeps_its_sizing_and_can_be_repeated(
    acme: Any, client: Any, workload: dict[str, Any], headline: str, limit: str
) -> None:
    seed("llama-3.1-8b", "flux.1-dev", "whisper-large-v3")
    client.force_login(acme.owner)
    machine = make_machine(gpu_memory_bytes=80 * 2**30)
    html = unescape(client.get(REVIEW, {"machine": machine.pk, **workload}).content.decode())
    assert headline in html
    assert limit in html
    assert confirm(client, fields(client.get(REVIEW, {"machine": machine.pk, **workload}).content.decode())).url
    order = Order.objects.get()
    assert order.sizing["fits"] is True
    assert order.sizing["headline"].startswith(headline)
    assert workload_from(order.workload) == workload_from(workload)
    receipt = unescape(client.get(f"/o/acme/orders/{order.pk}/").content.decode())
    assert headline in receipt
    if "target_modules" in workload:
        assert "target_modules=q&target_modules=v" in receipt


def test_a_workload_that_does_not_fit_says_what_is_lacking(acme: Any, client: Any) -> None:
    seed("flux.1-dev")
    client.force_login(acme.owner)
    machine = make_machine(gpu_memory_bytes=24 * 2**30, gpu_count=4)
    html = client.get(REVIEW, {"machine": machine.pk, "task": "image", "model": "flux.1-dev"}).content.decode()
    assert "38.71 GiB needed, 24.00 GiB there: 14.71 GiB too little." in html
