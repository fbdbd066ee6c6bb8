"""The seeded models: their figures, how they are loaded, and what is refused."""

import csv
import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sizing import explain, seeding
from sizing.engine.adapters import Adapters, adapted
from sizing.engine.estimate import estimate
from sizing.engine.kv_cache import KVCache
from sizing.engine.parallelism import legal_splits
from sizing.engine.shapes import TrainingShape
from sizing.engine.workloads import ATTENTION_TARGETS, RunModel
from sizing.figures import cache_groups, projections
from sizing.models import AiModel

ENGINE_TESTS = Path(__file__).parent / "engine"
ROWS = json.loads(seeding.MODELS.read_text(encoding="utf-8"))
MODELS = {row["slug"]: AiModel(**row) for row in ROWS}
LANGUAGE = {slug: model for slug, model in MODELS.items() if model.kind == AiModel.Kind.LANGUAGE}


def table(name: str) -> list[Any]:
    with (ENGINE_TESTS / name).open(encoding="utf-8") as file:
        return [pytest.param(row, id="-".join(list(row.values())[:5])) for row in csv.DictReader(file)]


def trained(slug: str) -> TrainingShape:
    model = MODELS[slug]
    assert model.layers
    assert model.hidden_size
    assert model.vocab_size
    return TrainingShape(model.layers, model.hidden_size, model.vocab_size, projections(model.projections))


def load(path: Path | None = None, **options: Any) -> str:
    out = StringIO()
    call_command("load_models", stdout=out, **({"file": path} if path else {}), **options)
    return out.getvalue().strip()


def test_there_are_85_models_and_one_cannot_be_sized() -> None:
    assert Counter(model.kind for model in MODELS.values()) == {"language": 66, "image": 11, "speech": 8}
    assert [slug for slug, model in MODELS.items() if model.missing_figure] == ["starcoder2-15b"]
    assert MODELS["starcoder2-15b"].unsizable_reason == (
        "Its number of parameters is not published: it cannot be sized"
    )


def test_llama_3_1_8b_is_called_as_the_field_calls_it() -> None:
    model = MODELS["llama-3.1-8b"]
    assert (model.name, model.parameters, model.max_context) == ("Llama 3.1 8B", 8_030_261_248, 131_072)


@pytest.mark.parametrize("model", MODELS.values(), ids=str)
def test_a_seeded_model_keeps_the_rules_of_the_admin(model: AiModel) -> None:
    model.clean_fields()
    model.clean()


@pytest.mark.parametrize("model", MODELS.values(), ids=str)
def test_a_model_says_where_its_figures_come_from_and_under_which_license(model: AiModel) -> None:
    assert model.source_url.startswith("https://")
    assert all(source.startswith("https://") for source in model.sources)
    assert model.license_text
    assert model.family
    assert model.release_year in range(2022, 2027)
    if model.kind == AiModel.Kind.LANGUAGE:
        assert sum(group["layers"] for group in model.cache_groups) == model.layers


def test_an_unknown_license_is_said_to_be_unknown() -> None:
    assert MODELS["olmo-2-13b"].license_text == "License not established"


@pytest.mark.parametrize("row", table("cache_bytes.csv"))
def test_the_cache_of_a_model_has_the_published_bytes(row: dict[str, str]) -> None:
    groups = cache_groups(MODELS[row["model"]].cache_groups)
    assert KVCache(groups, int(row["tokens"]), 1).bytes == int(row["bytes"])


def test_every_seeded_model_is_in_the_cache_table() -> None:
    listed = {param.values[0]["model"] for param in table("cache_bytes.csv")}
    assert listed == set(LANGUAGE)


@pytest.mark.parametrize("row", table("golden.csv"))
def test_a_golden_row_has_its_bytes(row: dict[str, str]) -> None:
    model, gpus = MODELS[row["model"]], int(row["gpus"])
    need = estimate(RunModel(model.shape(), int(row["bits"]), int(row["context"]), int(row["requests"])), gpus)
    found = {term.code: need.line_bytes(term) for term in need.terms}
    assert (found["weights"], found["kv_cache"], need.total_bytes) == (
        int(row["weights"]), int(row["kv_cache"]), int(row["total"]),
    )  # fmt: skip
    assert gpus in legal_splits(model.shape())


@pytest.mark.parametrize("row", table("lora_rank_16.csv"))
def test_rank_16_on_the_attention_trains_the_published_number_of_parameters(row: dict[str, str]) -> None:
    modules = adapted(projections(MODELS[row["model"]].projections), ATTENTION_TARGETS)
    assert Adapters(modules, rank=16).trainable_parameters == int(row["trainable_parameters"])


def test_every_language_model_is_in_the_table_of_adapters() -> None:
    assert {param.values[0]["model"] for param in table("lora_rank_16.csv")} == set(LANGUAGE)


@pytest.mark.parametrize(
    ("slug", "words"),
    [
        ("llama-3.1-8b", ("q", "k", "v", "o", "gate", "up", "down")),
        ("phi-4", ("q", "k", "v", "o", "gate", "up", "down")),
        ("falcon-7b", ("q", "k", "v", "o", "up", "down")),
        ("mixtral-8x7b", ("q", "k", "v", "o")),
        ("deepseek-v3", ("q", "k", "v", "o")),
    ],
)
def test_a_model_answers_to_the_target_words_of_its_modules(slug: str, words: tuple[str, ...]) -> None:
    assert trained(slug).target_words == words


@pytest.mark.parametrize(
    "model", [model for model in LANGUAGE.values() if model.parameters and not model.accepts_images], ids=str
)
def test_the_modules_and_the_embedding_are_nearly_all_of_a_dense_model(model: AiModel) -> None:
    modules = projections(model.projections)
    if "down" not in trained(model.slug).target_words:
        return
    counted = sum(each.layers * each.in_features * each.out_features for each in modules)
    assert model.vocab_size
    assert model.hidden_size
    embedding = model.vocab_size * model.hidden_size
    rest = (model.parameters or 0) - counted - embedding
    # What remains are norms and biases, and an output matrix where the model does not share the embedding's.
    assert min(abs(rest), abs(rest - embedding)) < (model.parameters or 0) // 1000


def test_a_window_in_every_layer_reserves_the_whole_context_and_says_so() -> None:
    for slug in ("phi-3-mini-4k", "phi-3-medium-4k", "starcoder2-15b"):
        assert all(group["window"] is None for group in MODELS[slug].cache_groups)
        assert "whole context is reserved" in MODELS[slug].cache_note


@pytest.mark.parametrize(
    ("slug", "splits"),
    [
        ("falcon-7b", (1,)),
        ("smollm2-135m", (1, 3)),
        ("qwen2.5-0.5b", (1, 2)),
        ("qwen2.5-7b", (1, 2, 4)),
        ("phi-4", (1, 2, 5, 10)),
        ("llama-3.1-70b", (1, 2, 4, 8, 16)),
    ],
)
def test_the_legal_splits_follow_from_heads_and_widths(slug: str, splits: tuple[int, ...]) -> None:
    assert legal_splits(MODELS[slug].shape()) == splits


@pytest.mark.parametrize("model", [model for model in LANGUAGE.values() if not model.missing_figure], ids=str)
def test_every_sizable_model_is_sized_and_explained(model: AiModel) -> None:
    for gpus in legal_splits(model.shape()):
        need = estimate(RunModel(model.shape(), context=min(4096, model.max_context or 0)), gpus)
        assert all(explain.formula(term) for term in need.terms)
        assert explain.assumptions(model, need)
        assert explain.sensitivity(need.workload, gpus)


def test_loading_twice_changes_nothing(db: None) -> None:
    assert load() == "AI models: 85 created, 0 updated, 0 unchanged"
    assert load() == "AI models: 0 created, 0 updated, 85 unchanged"
    assert AiModel.history.count() == 85


def test_the_database_tells_sizable_models_from_others(db: None) -> None:
    load()
    assert [model.slug for model in AiModel.objects.unsizable()] == ["starcoder2-15b"]
    assert AiModel.objects.sizable().count() == 84


def test_only_new_leaves_a_staff_edit_and_a_plain_load_takes_it_back(db: None) -> None:
    load()
    AiModel.objects.filter(slug="llama-3.1-8b").update(max_context=1000)
    assert load(only_new=True) == "AI models: 0 created, 0 updated, 85 unchanged"
    assert AiModel.objects.get(slug="llama-3.1-8b").max_context == 1000
    assert load() == "AI models: 0 created, 1 updated, 84 unchanged"
    assert AiModel.objects.get(slug="llama-3.1-8b").max_context == 131_072


GOOD = ROWS[3]
PROJECTION = {"module": "q_proj", "serves": ["q"], "in_features": 4096, "out_features": 4096, "layers": 32}
NETWORK = {"role": "denoiser", "name": "A network", "parameters": 7}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameters": 1.5}, "row 2, parameters: 1.5 must be a whole number or null"),
        ({"parameters": "8"}, "row 2, parameters"),
        ({"parameters": True}, "row 2, parameters"),
        ({"parameters": -1}, "row 2, parameters"),
        ({"name": None}, "row 2, name"),
        ({"slug": "No Slug"}, "row 2, slug"),
        ({"slug": "llama-3.1-8b"}, "row 2, slug: the same as in row 1"),
        ({"source_url": "nowhere"}, "row 2, source_url"),
        ({"heads": 8}, "row 2, heads: is not a field"),
        ({"cache_groups": {}}, "row 2, cache_groups: Give a list"),
        ({"cache_groups": [{"layers": 0, "elements_per_token": 1}]}, "Group 1: layers must be a whole number"),
        ({"cache_groups": [{"layers": 1, "elements_per_token": 1, "heads": 1}]}, "Group 1: heads is not known"),
        ({"cache_groups": [{"layers": 999, "elements_per_token": 1}]}, "The groups have 999 layers together"),
        ({"sources": "https://example.com"}, "row 2, sources"),
        ({"kind": "text_to_speech"}, "row 2, kind"),
        ({"projections": {}}, "row 2, projections: Give a list"),
        ({"projections": [{"module": "q_proj"}]}, "Projection 1: serves and in_features and out_features and layers"),
        ({"projections": [{**PROJECTION, "serves": ["x"]}]}, "Projection 1: serves must be a list of one or more of q"),
        ({"projections": [{**PROJECTION, "serves": [["q"]]}]}, "Projection 1: serves must be a list"),
        ({"projections": [{**PROJECTION, "serves": ["q", "q"]}]}, "Projection 1: serves must be a list"),
        ({"projections": [{**PROJECTION, "module": 7}]}, "Projection 1: module must be a text"),
        ({"projections": [{**PROJECTION, "in_features": 0}]}, "Projection 1: in_features must be a whole number"),
        ({"projections": [{**PROJECTION, "layers": 33}]}, "Projection 1 is in 33 layers, the model has 32"),
        ({"networks": [NETWORK, 1]}, "Network 2 must be an object"),
        ({"networks": [{**NETWORK, "role": "unet"}]}, "Network 1: role must be one of denoiser"),
        ({"networks": [{**NETWORK, "role": ["vae"]}]}, "Network 1: role must be one of denoiser"),
        ({"networks": [{**NETWORK, "parameters": 1.5}]}, "Network 1: parameters must be a whole number"),
        ({"networks": [{**NETWORK, "bits": 16}]}, "Network 1: bits is not known"),
        ({"networks": [NETWORK]}, "The networks have 7 parameters together, the model has 8,030,261,248"),
        ({"decoder_layers": 0}, "row 2, decoder_layers"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_loaded(db: None, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = tmp_path / "models.json"
    file.write_text(json.dumps([GOOD, {**GOOD, "slug": "another", "name": "Another", **change}]))
    with pytest.raises(CommandError, match="Nothing was loaded") as refused:
        load(file)
    assert said in str(refused.value)
    assert not AiModel.objects.exists()


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "[" * 5000])
def test_a_file_that_is_no_list_of_models_is_refused(db: None, tmp_path: Path, text: str) -> None:
    file = tmp_path / "models.json"
    file.write_text(text)
    with pytest.raises(CommandError, match=r"models\.json"):
        load(file)


def test_a_file_that_is_not_there_is_refused(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        load(tmp_path / "none.json")


def test_a_name_taken_by_staff_is_told_and_nothing_is_loaded(db: None) -> None:
    AiModel.objects.create(slug="mine", name="Llama 3.1 8B", family="Mine", source_url="https://example.com")
    with pytest.raises(CommandError, match="stands in the way"):
        load()
    assert AiModel.objects.count() == 1
