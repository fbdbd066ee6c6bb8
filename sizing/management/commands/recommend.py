"""Where a workload fits, on the command line: the machines, order, figures and words of the pages and the API."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from catalog.models import Tier
from sizing import explain
from sizing.answers import Answer
from sizing.documents import Document, answer_document
from sizing.management.question_options import OPTIONS, add_options, memory_lines, question_in
from sizing.matching import recommend
from sizing.permalinks import page_of


class Command(BaseCommand):
    help = "List the machines on which a workload fits, cheapest first, and why."

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser, OPTIONS)
        parser.add_argument("--json", action="store_true", help="Print the API's answer.")

    def handle(self, *args: Any, **options: Any) -> None:
        question = question_in(options)
        answer = recommend(question, now=timezone.now())
        document = answer_document(answer, page=page_of(question))
        if options["json"]:
            self.stdout.write(json.dumps(document, indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(answer, document)))


def _lines(answer: Answer, document: Document) -> Iterator[str]:
    """The API's answer as text."""
    term = f"{answer.question.preferences.term_days} days"
    yield from memory_lines(answer.question, answer.estimate)
    if note := document["memory"]["rounding_note"]:
        yield note
    yield from ("", f"Recommended machines ({document['recommended_count']})")
    for number, one in enumerate(document["recommended"], start=1):
        yield from _machine(number, one, term)
    if (nearest := document["nearest_miss"]) is not None:
        yield nearest["text"]
    yield from (change["text"] for change in document["changes"])
    alternatives = document["alternatives"]
    yield from ("", f"Alternatives ({len(alternatives['machines'])})")
    for number, one in enumerate(alternatives["machines"], start=1):
        yield from _machine(number, one, term)
        yield f"    Misses: {'; '.join(miss['text'] for miss in one['misses'])}"
    yield from map(explain.precision_text, answer.precision_alternatives)
    counts = (f"{left_out['count']}: {left_out['text']}" for left_out in document["not_considered"])
    yield from _section("Not considered", counts)
    yield from _section("Constraints applied", _texts(document["constraints"]))
    yield from _section("Limits of every answer", _texts(document["limits"]))
    yield from ("", f"Engine {document['engine_version']} · catalog {document['catalog_version']}")
    yield from (document["fingerprint"], document["html_url"])


def _machine(number: int, one: Document, term: str) -> Iterator[str]:
    machine, covers = one["machine"], one["budget_covers"]
    where = f"{Tier(machine['tier']).label}, {machine['country'] or 'location unknown'}, machine {machine['id']}"
    yield f"{number:>2}. {machine['name']} ({where}): ${one['package_usd']} per lot for {term}"
    yield f"    {one['why_it_fits']}"
    yield from (f"    Limit: {text}" for text in _texts(one["limits"]))
    yield f"    Confidence: {' '.join([one['confidence']['level'] + '.', *_texts(one['confidence']['reasons'])])}"
    if covers is not None:
        yield f"    Budget covers: {covers['text']}"


def _section(title: str, texts: Iterable[str]) -> Iterator[str]:
    yield from ("", title)
    yield from texts


def _texts(sentences: list[Document]) -> Iterator[str]:
    return (sentence["text"] for sentence in sentences)
