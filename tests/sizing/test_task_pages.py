"""Every task on the pages: its fields and nobody else's, its lines, its words, and the way between tasks."""

import html
import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.http import QueryDict
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.units import GB, GIB
from rentals.models import Order
from sizing.asked import GROUPS
from sizing.bars import TURNS
from sizing.forms import NAMES, question_from
from sizing.permalinks import canonical_query, question_document
from tests import factories
from tests.sizing.seeded import seed

LAUNCH, RESULT = "/launch/", "/launch/result/"
TUNE = {"task": "fine_tune", "model": "llama-3.1-8b", "sequence_length": "4096"}
QLORA = {**TUNE, "precision_bits": "4", "rank": "32", "target_modules": ["q", "v", "down"], "batch_size": "2"}
IMAGE = {"task": "image", "model": "sd3.5-large", "reserve_gib": "2", "reserve_reason": "it's a web server"}
SPEECH = {"task": "run", "model": "whisper-large-v3"}
NOTEBOOK = {"task": "notebook", "gpu_memory_gb": "24"}
TASKS = [TUNE, QLORA, IMAGE, SPEECH, NOTEBOOK]
FIELD_NAMES = {
    "run": ["model", "precision_bits", "context", "requests", "reserve_gib", "reserve_reason"],
    "run-speech": ["model", "precision_bits", "streams", "reserve_gib", "reserve_reason"],
    "fine_tune": [
        "model", "precision_bits", "sequence_length", "batch_size", "rank", "target_modules", "reserve_gib",
        "reserve_reason",
    ],
    "image": ["model", "reserve_gib", "reserve_reason"],
    "notebook": ["gpu_memory", "gpu_memory_unit"],
}  # fmt: skip
PREFERENCES = {"budget_usd", "max_hourly_usd", "term_days", "lots", "tier", "countries"}
SCRIPT = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _shop(db: None) -> None:
    seed("llama-3.1-8b", "mixtral-8x7b", "tinyllama-1.1b", "starcoder2-15b", "sd3.5-large", "whisper-large-v3")
    factories.make_machine(name="Small", gpu_memory_bytes=24 * GB, memory_unit="GB")
    factories.make_machine(name="Large", gpu_memory_bytes=80 * GIB)


def page(client: Client, address: str, values: dict[str, Any], **kwargs: Any) -> str:
    response = client.get(address, values, follow=True, **kwargs)
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def fields_on(text: str) -> set[str]:
    form = text[text.index('id="wizard"') :].partition("</form>")[0]
    # Fields of the form for one's own model stand inside, and are not the wizard's.
    return set(re.findall(r'<(?:input|select)(?![^>]* form=")[^>]* name="(\w+)"', form))


def part(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


# --- The wizard ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "asked"),
    [
        ("", {}),
        ("run", {"task": "run"}),
        ("run-speech", SPEECH),
        ("fine_tune", TUNE),
        ("image", {"task": "image"}),
        ("notebook", {"task": "notebook"}),
    ],
)
def test_a_task_has_its_own_fields_and_no_others(client: Client, group: str, asked: dict[str, Any]) -> None:
    text = page(client, LAUNCH, asked)
    assert fields_on(text) == {"task", "fields", *FIELD_NAMES.get(group, ()), *PREFERENCES}
    assert "oming" not in text


def test_every_group_of_fields_is_one_of_the_forms() -> None:
    assert set(FIELD_NAMES) <= set(GROUPS)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            TUNE,
            [
                "Fine-tune a model",
                ">Sequence length<",
                ">Batch size<",
                "LoRA rank 16 on q, k, v, o; gradient checkpointing on",
                "4 bits (QLoRA, NF4)",
            ],
        ),
        (IMAGE, ["Generate images", "one image at native resolution", "5 networks"]),
        (SPEECH, [">Audio streams at once<", '<optgroup label="Speech">', ">4 bits<"]),
        (NOTEBOOK, ["Open a notebook", ">GPU memory you need<", ">GiB<", ">GB<"]),
    ],
)
def test_the_labels_are_verbatim(client: Client, asked: dict[str, Any], words: list[str]) -> None:
    text = page(client, LAUNCH, asked)
    for label in words:
        assert label in text


def test_fine_tuning_has_its_usual_values_filled_in(client: Client) -> None:
    text = page(client, LAUNCH, {"task": "fine_tune", "model": "llama-3.1-8b"})
    assert re.search(r'name="sequence_length" value="2048"', text)
    assert re.search(r'name="batch_size" value="1"', text)
    ticked = re.findall(r'name="target_modules" value="(\w+)"[^>]* checked', text)
    assert ticked == ["q", "k", "v", "o"]


def test_only_models_of_the_task_are_listed_and_reasons_are_those_of_the_task(client: Client) -> None:
    def listed(task: str) -> dict[str, str]:
        return dict(re.findall(r'<option value="([^"]+)"([^>]*)>', page(client, LAUNCH, {"task": task})))

    assert set(listed("image")) == {"sd3.5-large"}
    assert "whisper-large-v3" in listed("run")
    assert not {"whisper-large-v3", "sd3.5-large"} & set(listed("fine_tune"))
    text = page(client, LAUNCH, {"task": "fine_tune"})
    assert re.search(r'value="starcoder2-15b" disabled>[^<]*cannot be sized for fine-tuning: its [^<]* not publ', text)


def test_target_modules_are_those_that_the_model_has_and_a_ticked_one_can_be_unticked(client: Client) -> None:
    def words(**asked: Any) -> list[str]:
        return re.findall(r'name="target_modules" value="(\w+)"', page(client, LAUNCH, {"task": "fine_tune", **asked}))

    assert words(model="llama-3.1-8b") == ["q", "k", "v", "o", "gate", "up", "down"]
    assert words(model="mixtral-8x7b") == ["q", "k", "v", "o"]
    assert words(model="mixtral-8x7b", target_modules="q,up") == ["q", "k", "v", "o", "up"]


def test_no_target_module_at_all_is_told_and_not_filled_in(client: Client) -> None:
    sent = {**TUNE, "fields": "fine_tune:q,k,v,o"}
    text = page(client, RESULT, sent)
    assert text.count("Target modules are empty: give one or more of") == 2
    assert not re.search(r'name="target_modules"[^>]* checked', text)
    response = client.get(RESULT, sent, headers=SCRIPT)
    assert "Target modules are empty" in response.content.decode()
    again = client.get(response["HX-Replace-Url"])
    assert not re.search(r'name="target_modules"[^>]* checked', again.content.decode())


@pytest.mark.parametrize(
    ("asked", "anchor", "sentence"),
    [
        ({**TUNE, "sequence_length": "131073"}, "id_sequence_length", "Sequence length must be 131,072 or less"),
        ({**TUNE, "batch_size": "0"}, "id_batch_size", "Batch size must be 1 or more."),
        ({**TUNE, "rank": "5000"}, "id_rank", "LoRA rank must be 4,096 or less"),
        ({**TUNE, "model": "mixtral-8x7b", "target_modules": "up"}, "id_target_modules_0", "no module for up"),
        ({**SPEECH, "streams": "many"}, "id_streams", "Audio streams at once must be a whole number"),
        ({"task": "image", "model": ""}, "id_model", "Choose a model."),
        (
            {"task": "notebook", "gpu_memory": "x", "gpu_memory_unit": "gb"},
            "id_gpu_memory",
            "GPU memory you need must be an amount in GB",
        ),
        ({"task": "notebook", "gpu_memory": "", "gpu_memory_unit": "gib"}, "id_gpu_memory", "is empty"),
        ({**NOTEBOOK, "gpu_memory_gib": "24"}, "id_gpu_memory", "not in both"),
    ],
)
def test_bad_input_is_told_at_its_field_and_kept(
    client: Client, asked: dict[str, Any], anchor: str, sentence: str
) -> None:
    text = page(client, RESULT, asked)
    assert f'<a href="#{anchor}">' in text
    assert f'id="{anchor}"' in text
    assert text.count(sentence) == 2
    for name, value in asked.items():
        if name in ("sequence_length", "batch_size", "rank", "streams", "gpu_memory"):
            assert re.search(rf'name="{name}"[^>]* value="{value}"', text)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({**TUNE, "method": "full"}, "Full fine-tuning is not sized: it needs weight"),
        ({**TUNE, "context": "4096"}, "Context belongs to “Run a model”, not to “Fine-tune a model”: leave it out."),
        ({**SPEECH, "context": "4096"}, "Context does not apply to Whisper large-v3"),
        ({**NOTEBOOK, "model": "llama-3.1-8b"}, "Model belongs to"),
        ({**IMAGE, "model": "llama-3.1-8b"}, "Llama 3.1 8B is a language model"),
    ],
)
def test_what_the_task_does_not_take_is_refused_by_name(client: Client, asked: dict[str, Any], sentence: str) -> None:
    text = page(client, RESULT, asked)
    assert text.count(sentence) == 2
    target = re.search(rf'<a href="#([\w-]+)">{re.escape(sentence)}', text)
    assert target
    assert f'id="{target[1]}"' in text
    assert "GiB needed" not in text


def test_without_a_task_only_the_task_is_missing(client: Client) -> None:
    text = page(client, RESULT, {"fields": "", "term_days": "7"})
    assert re.findall(r'<li><a href="#([^"]+)">([^<]+)', text) == [("id_task_0", "Choose what you want to do.")]


# --- From task to task --------------------------------------------------------------------------------------------


def test_without_script_a_button_shows_the_fields_of_the_chosen_task_and_keeps_what_applies(client: Client) -> None:
    text = page(client, LAUNCH, {"task": "run"})
    assert re.search(rf'<noscript>.*?<button type="submit"[^>]* formaction="{LAUNCH}">Show its fields</button>', text)
    sent = {
        "fields": "run", "task": "fine_tune", "model": "llama-3.1-8b", "precision_bits": "8", "context": "9000",
        "requests": "1", "reserve_gib": "1.5", "reserve_reason": "mine", "budget_usd": "300", "max_hourly_usd": "",
        "countries": ["EU", "US"], "tier": "secure",
    }  # fmt: skip
    response = client.get(LAUNCH, sent)
    assert response.status_code == 302
    address, _, query = response["Location"].removesuffix("#step-model").partition("?")
    kept = QueryDict(query)
    assert address == LAUNCH
    assert set(kept) == {*sent} - {"fields", "context", "requests", "max_hourly_usd"}
    assert kept.getlist("countries") == ["EU", "US"]
    text = page(client, response["Location"], {})
    assert re.search(r'value="llama-3.1-8b" selected', text)
    assert re.search(r'name="precision_bits" value="8"[^>]* checked', text)
    assert re.search(r'name="reserve_reason"[^>]* value="mine"|value="mine"[^>]*name="reserve_reason"', text)


def test_a_model_of_another_kind_is_not_kept(client: Client) -> None:
    response = client.get(LAUNCH, {"fields": "run", "task": "image", "model": "llama-3.1-8b", "context": "4096"})
    assert response["Location"] == f"{LAUNCH}?task=image#step-model"


@pytest.mark.parametrize(
    ("sent", "group"),
    [
        ({"fields": "", "task": "fine_tune"}, "fine_tune"),
        ({"fields": "run", "task": "notebook", "model": "llama-3.1-8b", "context": "4096"}, "notebook"),
        ({"fields": "run", **SPEECH, "context": "4096", "requests": "1"}, "run-speech"),
        ({"fields": "fine_tune:q,k,v,o", "task": "run", "model": "llama-3.1-8b", "rank": "16"}, "run"),
    ],
)
def test_sent_with_the_fields_of_another_task_the_page_comes_back_with_the_right_ones(
    client: Client, sent: dict[str, Any], group: str
) -> None:
    text = page(client, RESULT, sent)
    assert set(FIELD_NAMES[group]) <= fields_on(text)
    assert "asks other things" in text
    assert "There is a problem" not in text


def test_the_script_gets_the_fields_when_the_task_changes_and_the_sentence_at_once(client: Client) -> None:
    sent = {"fields": "run", "task": "fine_tune", "model": "llama-3.1-8b", "context": "4096", "precision_bits": "16"}
    response = client.get(RESULT, sent, headers=SCRIPT)
    text = html.unescape(response.content.decode())
    assert re.match(r"\s*23\.32 GiB needed, 1 machine fits, from ", text)
    assert '<div id="model-fields" hx-swap-oob="true">' in text
    assert 'name="sequence_length" value="2048"' in text
    assert response["HX-Replace-Url"] == f"{LAUNCH}?task=fine_tune&model=llama-3.1-8b&precision_bits=16"


@pytest.mark.parametrize(
    ("fields", "asked", "swapped"),
    [
        ("run", {"task": "run", "model": "llama-3.1-8b"}, ["model-facts", "context-chips"]),
        ("run", SPEECH, ["model-facts", "task-fields"]),
        ("run-speech", SPEECH, ["model-facts"]),
        ("fine_tune:q,k,v,o,gate,up,down", TUNE, ["model-facts", "context-chips"]),
        ("fine_tune:q,k,v,o", TUNE, ["model-facts", "task-fields"]),
        ("image", IMAGE, ["model-facts"]),
        ("notebook", NOTEBOOK, []),
        ("", NOTEBOOK, ["model-fields", "own-model-place"]),
        ("notebook", {"task": "run"}, ["model-fields", "own-model-place"]),
        ("image", NOTEBOOK, ["model-fields"]),
        ("run", TUNE, ["model-fields"]),
    ],
)
def test_the_script_swaps_only_what_is_on_the_page(
    client: Client, fields: str, asked: dict[str, Any], swapped: list[str]
) -> None:
    target = {"target_modules": ["q"]} if fields.startswith("fine_tune") else {}
    text = client.get(RESULT, {"fields": fields, **asked, **target}, headers=SCRIPT).content.decode()
    assert re.findall(r'id="([\w-]+)" hx-swap-oob', text) == swapped


@pytest.mark.parametrize(("task", "offered"), [("", 1), ("run", 1), ("fine_tune", 1), ("image", 0), ("notebook", 0)])
def test_a_model_of_ones_own_is_offered_where_a_task_takes_one(client: Client, task: str, offered: int) -> None:
    assert page(client, LAUNCH, {"task": task}).count("<summary>Use your own model</summary>") == offered
    text = client.get(RESULT, {"fields": "image" if offered else "run", "task": task}, headers=SCRIPT).content.decode()
    assert text.count("<summary>Use your own model</summary>") == offered


# --- The answer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            TUNE,
            [
                "Fine-tuning Llama 3.1 8B, LoRA on 16 bits, rank 16 on q, k, v, o, 4,096 tokens × batch size 1 needs",
                "27.44",
                "Base weights",
                "14.96",
                "13,631,488 trainable parameters × 16 bytes",
                "2 bytes × 4,096 tokens × 1 × 4,096 hidden × 32 layers",
                "12 × 4,096 tokens × 1 × 128,256 vocabulary",
                "20 % of 22.03 GiB",
                "https://arxiv.org/abs/2106.09685",
                "https://arxiv.org/abs/1910.02054",
                "https://arxiv.org/abs/2205.05198",
                "One GPU must hold all of it",
                "each further sequence of the batch",
            ],
        ),
        (QLORA, ["4.127 bits", "3.86", "https://arxiv.org/abs/2305.14314", "QLoRA on 4 bits, rank 32 on q, v, down"]),
        (
            IMAGE,
            [
                "Stable Diffusion 3.5 Large, one image at native resolution needs",
                "Denoiser",
                "Text encoder 2",
                "Text encoder 3",
                "Autoencoder (VAE)",
                "Own reserve",
                "Image generation depends on the pipeline",
            ],
        ),
        (SPEECH, ["Decoder cache", "(448 + 1,500) positions × 1 stream", "1 audio stream at once needs"]),
        (
            NOTEBOOK,
            [
                "A notebook, stated with 24 GB of GPU memory, needs",
                "22.35",
                "24 GB: as you stated it, nothing added",
                "The need is the figure you stated; nothing was computed.",
            ],
        ),
    ],
)
def test_the_answer_has_the_figures_and_words_of_its_task(
    client: Client, asked: dict[str, Any], words: list[str]
) -> None:
    text = page(client, RESULT, asked)
    for expected in words:
        assert expected in text
    assert "Split over several GPUs" not in text
    assert "None" not in re.sub(r"<[^>]+>|None:", " ", text)
    assert text.count("<h1") == 1


def test_neighbours_in_a_bar_differ_in_fill_and_all_lines_in_pattern(client: Client) -> None:
    text = page(client, RESULT, IMAGE)
    bar = part(text, "<svg class", "</svg>\n  <figcaption>")
    fills = re.findall(r'class="seg seg-([a-f])"', bar)
    assert fills == list("abcdefab")
    patterns = re.findall(r'fill="url\(#([\w-]+)\)"', bar)
    assert patterns == list(TURNS[1:])
    for pattern in patterns:
        assert f'<pattern id="{pattern}"' in text


@pytest.mark.parametrize("asked", TASKS)
def test_page_api_and_command_say_the_same_of_every_task(client: Client, asked: dict[str, Any]) -> None:
    query = canonical_query(question_from(asked))
    text = page(client, f"{RESULT}?{query}&show=all", {})
    body = json.dumps(question_document(question_from(QueryDict(query))), ensure_ascii=False)
    answer = client.post("/api/v1/recommendations", body, content_type="application/json").json()
    assert answer["memory"]["lines"]
    assert f"{answer['memory']['total_gib']} GiB" in text
    shown = part(text, '<table class="table memory-table">', "</table>")
    for line in answer["memory"]["lines"]:
        for words in (line["label"], line["formula"], line["gib"]):
            assert words in shown
    for said in [*answer["memory"]["assumptions"], *(source["url"] for source in answer["memory"]["sources"])]:
        assert said in text
    for row in [*answer["recommended"], *answer["alternatives"]["machines"]]:
        for said in [row["why_it_fits"], *(one["text"] for one in [*row["limits"], *row["confidence"]["reasons"]])]:
            assert said in text
    for said in [*answer["constraints"], *answer["limits"], *answer["not_considered"]]:
        assert said["text"] in text
    assert answer["fingerprint"] in text
    command = re.search(r'<code id="curl">(.*?)</code>', text, re.S)
    assert command
    assert body.replace("'", "\\u0027") in command[1]

    options = []
    for name, value in json.loads(body)["workload"].items():
        option = {"precision_bits": "bits"}.get(name, name.replace("_", "-"))
        options += [f"--{option}", ",".join(value) if isinstance(value, list) else str(value)]
    printed = StringIO()
    call_command("size", *options, "--json", stdout=printed)
    assert json.loads(printed.getvalue()) == answer["memory"]


@pytest.mark.parametrize("asked", TASKS)
def test_the_address_of_an_answer_is_its_question(client: Client, asked: dict[str, Any]) -> None:
    query = canonical_query(question_from(asked))
    assert canonical_query(question_from(QueryDict(query))) == query
    response = client.get(f"{RESULT}?{query}")
    assert response.status_code == 200
    filled = client.get(f"{LAUNCH}?{query}").content.decode()
    assert "GiB needed" in filled


def test_the_page_of_a_notebook_leads_to_the_one_name_of_its_figure(client: Client) -> None:
    sent = {"task": "notebook", "fields": "notebook", "gpu_memory": "24", "gpu_memory_unit": "gb"}
    response = client.get(RESULT, sent)
    assert response["Location"] == f"{RESULT}?task=notebook&gpu_memory_gb=24&term_days=7&lots=1&tier=any"
    assert client.get(RESULT, {**sent, "gpu_memory_unit": "tb"}).status_code == 400


def test_when_no_gpu_holds_it_every_change_offered_is_of_the_task_and_gives_a_machine(client: Client) -> None:
    text = page(client, RESULT, {**TUNE, "sequence_length": "65536", "batch_size": "4"})
    offered = part(text, 'class="empty-state"', "</section>")
    links = re.findall(r'href="([^"]+)">See this answer', offered)
    assert links
    for link in links:
        assert re.search(r"<strong>\d+ machines? fits?</strong>", page(client, link, {}))
    assert "context" not in offered.lower()


@pytest.mark.parametrize("asked", TASKS)
def test_review_and_receipt_keep_the_sizing_of_any_task(client: Client, acme: Any, asked: dict[str, Any]) -> None:
    client.force_login(acme.owner)
    machine = factories.make_machine(name="Ours", gpu_memory_bytes=80 * GIB)
    text = page(client, f"/o/acme/orders/review/?machine={machine.pk}&{canonical_query(question_from(asked))}", {})
    form = part(text, '<form method="post" action="/o/acme/orders/review/"', "</form>")
    sent: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if attributes.get("type") not in ("radio", "checkbox") or re.search(r"\bchecked\b", tag):
            sent.setdefault(attributes.get("name", ""), []).append(attributes.get("value", ""))
    placed = client.post("/o/acme/orders/review/", {**sent, "confirm": "1"}, follow=True)
    assert placed.status_code == 200
    receipt = html.unescape(placed.content.decode())
    order = Order.objects.get()
    assert order.sizing is not None
    for line in order.sizing["memory"]["lines"]:
        for words in (line["label"], line["formula"], line["gib"]):
            assert words in text
            assert words in receipt
    assert order.sizing["headline"] in receipt


# --- Anything at all ----------------------------------------------------------------------------------------------

ODD = ["", "-1", "1e309", "NaN", "\x00", "9" * 50]
PLAUSIBLE = [
    "run", "fine_tune", "image", "notebook", "llama-3.1-8b", "sd3.5-large", "whisper-large-v3", "starcoder2-15b", "16",
    "8", "4", "4096", "131072", "7", "3", "1", "any", "secure", "EU", "300", "q", "q,v", "lora", "full", "gib", "gb",
    "run-speech", "fine_tune:q",
]  # fmt: skip
nonsense = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(ODD)
names = st.sampled_from([*NAMES, "show", "fields", "gpu_memory", "gpu_memory_unit", "x"])
pairs_of_a_query = st.lists(st.tuples(names, nonsense | st.sampled_from(PLAUSIBLE)), max_size=12)
whole = st.sampled_from([{}, *TASKS])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(whole, pairs_of_a_query)
def test_no_address_is_an_error_of_ours(client: Client, start: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    query = QueryDict(mutable=True)
    for name, value in start.items():
        query.setlist(name, value if isinstance(value, list) else [value])
    for name, value in pairs:
        query.appendlist(name, value)
    for address in (LAUNCH, RESULT):
        for headers in ({}, SCRIPT):
            response = client.get(f"{address}?{query.urlencode()}", headers=headers)
            assert response.status_code in (200, 302, 400)
