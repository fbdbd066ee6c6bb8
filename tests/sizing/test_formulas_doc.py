"""The page of formulas: what is committed is what the vectors give, and a placeholder cannot be wrong in silence."""

import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sizing.conformance import formulas
from sizing.conformance.formulas import PAGE, UnknownFigure, page, render
from sizing.conformance.vectors import by_id, own

ROOT = PAGE.parent.parent


def test_the_committed_page_is_the_one_that_the_vectors_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run manage.py write_formulas"
    call_command("write_formulas", "--check")


def test_another_page_than_the_vectors_give_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "formulas.md"
    changed.write_text(page().replace("19.55", "19.56"), encoding="utf-8")
    monkeypatch.setattr("sizing.management.commands.write_formulas.PAGE", changed)
    with pytest.raises(CommandError, match="write_formulas"):
        call_command("write_formulas", "--check")
    call_command("write_formulas")
    assert changed.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{{ llama-3.1-8b-16-4096 inputs.model.parameters }}", "8,030,261,248"),
        ("{{ llama-3.1-8b-16-4096 expect.lines.weights.gib }}", "14.96"),
        ("{{ llama-3.1-8b-16-4096 inputs.model.cache_groups.0.layers }}", "32"),
        ("{{ legal-qwen2.5-7b expect.legal_gpus }}", "1, 2, 4"),
    ],
)
def test_a_placeholder_becomes_the_vector_s_figure(template: str, filled: str) -> None:
    assert render(template, by_id(own())) == filled


@pytest.mark.parametrize(
    "template",
    [
        "{{ no-such-vector expect.total.gib }}",
        "{{ lines no-such-vector }}",
        "{{ llama-3.1-8b-16-4096 expect.lines.luck.gib }}",
        "{{ llama-3.1-8b-16-4096 expect.total.gib.more }}",
        "{{ llama-3.1-8b-16-4096 inputs.model.cache_groups.7.layers }}",
    ],
)
def test_a_placeholder_without_a_figure_is_an_error(template: str) -> None:
    with pytest.raises(UnknownFigure):
        render(template, by_id(own()))


def test_no_placeholder_is_left_and_every_link_in_the_page_leads_somewhere() -> None:
    text = page()
    assert "{{" not in text
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", text, re.M)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif not target.startswith("https://"):
            assert (PAGE.parent / target).exists(), target


def test_worked_figures_stand_in_the_template_only_as_placeholders() -> None:
    template = formulas.TEMPLATE.read_text(encoding="utf-8")
    # Figures with decimals are results; 4.127, 0.127 and the names of models and papers are not.
    words = re.sub(r"\{\{.*?\}\}|https?://\S+|arXiv:\S+|(?:Llama|Qwen|gpt-oss|Phi|MLA)\S* ?[\d.]+\w*", "", template)
    assert set(re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", words)) <= {"4.127", "0.127", "1.0"}
