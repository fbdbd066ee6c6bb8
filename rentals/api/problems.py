"""Every code that an error of the API may have, with what it means and what to do: the one table of them.

Titles in answers, `GET /api/v1/errors` and `docs/errors.md` are made from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "errors.md"


class Problem(NamedTuple):
    """A code of an error as a whole. Codes never change their meaning; new ones may come."""

    code: str
    status: int
    title: str
    meaning: str
    remedy: str


class FieldCode(NamedTuple):
    """A code of one entry of `errors`."""

    code: str
    meaning: str


PROBLEMS = (
    Problem(
        "invalid", 400, "Something in the request is not valid",
        "One or more fields, parameters or headers; `errors` names each with its own code and sentence.",
        "Put right what `errors` names, then send it again. Nothing was done.",
    ),
    Problem(
        "parse_error", 400, "The body cannot be read",
        "The body is not JSON in UTF-8, names a key twice, has NaN or Infinity, a number of thousands of digits, or is "
        "nested too deep.",
        "Send JSON that every reader reads the same.",
    ),
    Problem(
        "term_not_offered", 400, "Not sold for this term",
        "The machine is not sold for `term_days`; `offered_term_days` lists the terms it is sold for.",
        "Choose one of `offered_term_days`.",
    ),
    Problem(
        "acknowledgement_required", 400, "An acknowledgement is missing",
        "A Community machine needs `community_acknowledged`; a workload that does not fit needs `misfit_acknowledged`. "
        "`errors` says which.",
        "Send true there, if that is what you want.",
    ),
    Problem(
        "unauthenticated", 401, "No valid key",
        "There is no key, or it is none of ours, revoked or expired.",
        "Send `Authorization: Bearer berth_…` with a key of your organization.",
    ),
    Problem(
        "forbidden", 403, "Not allowed",
        "The key lacks the scope that `detail` names.",
        "Make a key with that scope.",
    ),
    Problem(
        "policy", 403, "Your organization's policy does not allow it",
        "`rule` is the rule of the policy that was broken; GET /policy shows all of them.",
        "Order what the policy allows, or ask an owner or admin to change it.",
    ),
    Problem(
        "not_found", 404, "Not found",
        "There is nothing at this address, or it is not yours: both have the same answer.",
        "Check address and id.",
    ),
    Problem(
        "method_not_allowed", 405, "This address does not take that method",
        "The header `Allow` lists the methods.",
        "Use one of them.",
    ),
    Problem(
        "sold_out", 409, "Sold out",
        "Fewer lots are free than were asked; `available_lots` is how many. Nothing was stored, the idempotency key "
        "stays free.",
        "Ask for at most `available_lots`, or choose another machine.",
    ),
    Problem(
        "off_line", 409, "Not offered at the moment",
        "The machine is listed but cannot be had now.",
        "Choose another machine, or try later.",
    ),
    Problem(
        "price_changed", 409, "The price has changed",
        "The total is `new_total_usd` now, not `old_total_usd`. Nothing was stored, the idempotency key stays free.",
        "Quote again; order with the new total if you agree.",
    ),
    Problem(
        "in_progress", 409, "Still being worked on",
        "The same request with the same idempotency key is running.",
        "Send it again after `Retry-After`.",
    ),
    Problem(
        "order_over", 409, "The term of the order is over",
        "Its lots can no longer be started or stopped.",
        "Place a new order.",
    ),
    Problem(
        "length_required", 411, "The body has no length",
        "It came in chunks, and the server that runs here cannot read those; the one of production does.",
        "Send the body with `Content-Length`.",
    ),
    Problem(
        "already_exists", 409, "There is one already",
        "The organization has one of this name or address, which is not what was sent; `existing_id` is its id.",
        "Use the one that is there, change it, or take another name or address.",
    ),
    Problem(
        "secret_changed", 409, "There is another secret already",
        "`secret_made_at` is not that of the present secret; nothing was changed.",
        "Read the endpoint again. If you never saw the new secret, send the `secret_made_at` that it has now.",
    ),
    Problem(
        "turned_off", 409, "The endpoint is turned off",
        "An endpoint that is turned off is told nothing.",
        "Turn it on with PATCH and `enabled: true`.",
    ),
    Problem(
        "limit_reached", 409, "There are as many as there may be",
        "The organization keeps no more of these; the sentence says how many.",
        "Remove one that is no longer needed.",
    ),
    Problem(
        "payload_too_large", 413, "The body is too large",
        "A body has 1 MiB at most.",
        "Send less.",
    ),
    Problem(
        "unsupported_media_type", 415, "The body must be JSON",
        "The body is of another type, compressed, or in another charset.",
        "Send `Content-Type: application/json`, in UTF-8, uncompressed.",
    ),
    Problem(
        "idempotency_mismatch", 422, "The key was used for another request",
        "The idempotency key belongs to another body; `errors` names the fields that differ.",
        "Repeat the first body to get its answer, or take a new key for a new order.",
    ),
    Problem(
        "throttled", 429, "Too many requests",
        "More requests than `RateLimit-Limit` in a minute, counted by key, or by address without one.",
        "Wait `Retry-After` seconds. Watch `RateLimit-Remaining` to never get here.",
    ),
    Problem(
        "server_error", 500, "Something went wrong here",
        "The fault is ours; it is logged under `request_id`.",
        "Tell us the `request_id`. An order may be sent again with the same idempotency key: it is never placed twice.",
    ),
    Problem(
        "unavailable", 503, "Not available at the moment",
        "The database is too busy, and nothing was done; or it is away, and nobody can tell at this moment.",
        "Send it again after `Retry-After`, with the same idempotency key.",
    ),
)  # fmt: skip

FIELD_CODES = (
    FieldCode("required", "It is missing or empty."),
    FieldCode("invalid", "It is of the wrong kind, or cannot be read exactly."),
    FieldCode("invalid_choice", "It is none of the words or numbers it may be; the sentence lists them."),
    FieldCode("min_value", "It is less than the least value, which is named."),
    FieldCode("max_value", "It is more than the greatest value, which is named, such as a model's published context."),
    FieldCode("min_length", "The list has too few entries."),
    FieldCode("max_length", "The text is too long."),
    FieldCode("max_digits", "The number has more digits than any amount here."),
    FieldCode("max_whole_digits", "The number has more digits before the point than any amount here."),
    FieldCode("max_decimal_places", "The amount has more decimals than are counted."),
    FieldCode("unknown_field", "There is no such field or parameter; the nearest known one is named."),
    FieldCode("repeated", "It was given twice, or two fields say the same."),
    FieldCode("other_task", "The field belongs to another task or kind of model."),
    FieldCode("wrong_kind", "The model is of another kind than the task needs."),
    FieldCode("unknown_model", "It is no model of the catalog, nor one of your organization's own."),
    FieldCode("not_sizable", "The model cannot be sized for the task: the figure that is not published is named."),
    FieldCode("as_stored", "Precision does not apply to weights that are counted as stored."),
    FieldCode("unreadable_model", "The files or the shape of your own model are not understood."),
    FieldCode("illegal_split", "The model cannot be split over so many GPUs."),
    FieldCode("unknown_has_figure", "An entry that is still unknown has an amount."),
    FieldCode("term_not_offered", "See the error of that name."),
    FieldCode("acknowledgement_required", "See the error of that name."),
    FieldCode("not_found", "There is no such machine or option."),
    FieldCode("off_line", "See the error of that name."),
    FieldCode("sold_out", "See the error of that name."),
    FieldCode("price_changed", "See the error of that name."),
    FieldCode("already_exists", "See the error of that name."),
    FieldCode("limit_reached", "See the error of that name."),
    FieldCode("turned_off", "See the error of that name."),
    FieldCode("idempotency_mismatch", "It differs from the request that the key was first used for."),
)
TITLES = {problem.code: problem.title for problem in PROBLEMS}

_HEAD = """# Errors of the API

This page is written by `manage.py write_errors`; a test holds it to the code.

Every error, whatever its cause, is `application/problem+json` (RFC 9457):

```json
{
  "type": "https://…/api/v1/errors#sold_out",
  "title": "Sold out",
  "status": 409,
  "code": "sold_out",
  "detail": "2 lots asked, 1 free.",
  "available_lots": 1,
  "errors": [{"field": "lots", "code": "sold_out", "detail": "2 lots asked, 1 free."}],
  "request_id": "6a7e1f2c-…"
}
```

Programs act on `code` and on `errors[].code`: they are stable. `detail` is for people and may change. `errors[].field`
is the dotted path in what was sent, such as `workload.context` or `options[0].quantity`, the name of a parameter or of
a header. `request_id` is also the header `X-Request-ID` of every answer: it finds the request in the log.
`type` leads to the list of codes, `GET /api/v1/errors`.

"""


def page() -> str:
    """The text of docs/errors.md."""
    lines = [_HEAD, "## Codes\n\n"]
    for problem in PROBLEMS:
        lines.append(f"### {problem.code}\n\n")
        lines.append(f"**{problem.status}, “{problem.title}”.** {problem.meaning}\n\n{problem.remedy}\n\n")
    lines.append("## Codes of fields\n\n| `errors[].code` | meaning |\n| --- | --- |\n")
    lines += [f"| `{one.code}` | {one.meaning} |\n" for one in FIELD_CODES]
    return "".join(lines)


def document() -> dict[str, list[dict[str, object]]]:
    """The same as JSON."""
    return {"errors": [one._asdict() for one in PROBLEMS], "field_codes": [one._asdict() for one in FIELD_CODES]}
