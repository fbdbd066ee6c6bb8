"""What the generator of the OpenAPI document does not know by itself: headers, links, examples, and strict bodies."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

Document = dict[str, Any]

# Real requests and answers; a test writes them, and fails when they are no longer what is answered.
EXAMPLES = Path(__file__).with_name("api_examples.json")
TAGS = {
    "Catalog": "GPUs, machines, AI models and options. Everybody may read them.",
    "Sizing": "What a workload needs, and where it fits. Everybody may ask; with a key, for its organization.",
    "Calculator": "Memory of parameters and of chains of stages, without a model.",
    "Orders": "Quotes, plans, orders and their lots.",
    "Organization": "What a key may read of its own organization.",
    "Webhooks": "Endpoints that are told of events, their secrets, and what was delivered.",
    "Saved searches": "Questions that are asked again and again.",
    "Own models": "Models that an organization keeps, beside those of the catalog.",
    "SSH keys": "The public keys that are put on an organization's lots.",
    "About": "The codes of errors.",
}
_TAG_OF = {
    **dict.fromkeys(("gpus", "machines", "options", "models"), "Catalog"),
    **dict.fromkeys(("sizing", "recommendations"), "Sizing"),
    "calculator": "Calculator",
    **dict.fromkeys(("quotes", "planner", "orders"), "Orders"),
    "ssh-keys": "SSH keys",
    "webhooks": "Webhooks",
    "own-models": "Own models",
    "saved-searches": "Saved searches",
    "errors": "About",
}
_SCHEMAS = "#/components/schemas/"
_SECONDS: Document = {"type": "integer", "minimum": 0}
HEADERS: dict[str, Document] = {
    "X-Request-ID": {"description": "The id of this answer in the log.", "schema": {"type": "string"}},
    "RateLimit-Limit": {
        "description": "Requests a minute: of the key, or of the address when there is none.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "RateLimit-Remaining": {"description": "Requests left now.", "schema": {"type": "integer", "minimum": 0}},
    "RateLimit-Reset": {
        "description": "Seconds until the oldest counted requests are forgotten, and more are left.",
        "schema": _SECONDS,
    },
    "Retry-After": {"description": "Seconds to wait.", "schema": _SECONDS},
    "ETag": {"description": "For `If-None-Match`.", "schema": {"type": "string"}},
    "Location": {"description": "The address of what was made.", "schema": {"type": "string"}},
    "Idempotency-Replayed": {
        "description": "“true” when this is the stored answer of the first request with the key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "WWW-Authenticate": {"description": "How to send a key.", "schema": {"type": "string"}},
}
_EVERYWHERE = ("X-Request-ID", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_HEADERS_OF = {"304": ("ETag",), "401": ("WWW-Authenticate",), "429": ("Retry-After",), "503": ("Retry-After",)}
IF_NONE_MATCH: Document = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` of an answer that you have: 304 when it is still the same.",
    "schema": {"type": "string"},
}


def _lot(body: str, number: str) -> dict[str, str]:
    return {"order_id": f"$response.body#/{body}", "number": f"$response.body#/{number}"}


_PLACED = _lot("id", "allocations/0/number")
_STOPPED = _lot("order", "number")
LINKS: dict[tuple[str, str], dict[str, Document]] = {
    ("list_gpus", "200"): {"get_gpu": {"parameters": {"slug": "$response.body#/results/0/slug"}}},
    ("list_options", "200"): {"get_option": {"parameters": {"slug": "$response.body#/results/0/slug"}}},
    ("list_models", "200"): {
        "get_model": {"parameters": {"slug": "$response.body#/results/0/slug"}},
        "size": {"requestBody": {"workload": {"task": "run", "model": "$response.body#/results/0/slug"}}},
    },
    ("list_machines", "200"): {
        "get_machine": {"parameters": {"machine_id": "$response.body#/results/0/id"}},
        "quote": {"requestBody": {"machine": "$response.body#/results/0/id", "term_days": 7}},
        "plan": {"requestBody": {"machine": "$response.body#/results/0/id", "days": 45}},
    },
    ("recommend", "200"): {
        "quote": {"requestBody": {"machine": "$response.body#/recommended/0/machine/id", "term_days": 7}},
    },
    ("quote", "200"): {
        "place_order": {
            "requestBody": {
                "machine": "$response.body#/machine",
                "term_days": "$response.body#/term_days",
                "lots": "$response.body#/lots",
                "expected_total_usd": "$response.body#/total_usd",
            }
        }
    },
    ("place_order", "201"): {
        "get_order": {"parameters": {"order_id": "$response.body#/id"}},
        "stop_allocation": {"parameters": _PLACED},
        "start_allocation": {"parameters": _PLACED},
    },
    ("list_orders", "200"): {"get_order": {"parameters": {"order_id": "$response.body#/results/0/id"}}},
    ("add_ssh_key", "201"): {"remove_ssh_key": {"parameters": {"ssh_key_id": "$response.body#/id"}}},
    ("list_ssh_keys", "200"): {"get_ssh_key": {"parameters": {"ssh_key_id": "$response.body#/results/0/id"}}},
    ("keep_own_model", "201"): {"delete_own_model": {"parameters": {"model_slug": "$response.body#/slug"}}},
    ("list_own_models", "200"): {"get_own_model": {"parameters": {"model_slug": "$response.body#/results/0/slug"}}},
    ("save_search", "201"): {"delete_saved_search": {"parameters": {"search_id": "$response.body#/id"}}},
    ("list_saved_searches", "200"): {"get_saved_search": {"parameters": {"search_id": "$response.body#/results/0/id"}}},
    ("make_webhook", "201"): {
        "replace_webhook_secret": {
            "parameters": {"endpoint_id": "$response.body#/id"},
            "requestBody": {"secret_made_at": "$response.body#/secret_made_at"},
        },
        "remove_webhook": {"parameters": {"endpoint_id": "$response.body#/id"}},
    },
    ("list_webhook_deliveries", "200"): {
        name: {
            "parameters": {
                "endpoint_id": "$response.body#/results/0/endpoint_id",
                "event_id": "$response.body#/results/0/event_id",
            }
        }
        for name in ("get_webhook_delivery", "replay_webhook_delivery")
    },
    ("list_webhooks", "200"): {
        name: {"parameters": {"endpoint_id": "$response.body#/results/0/id"}}
        for name in ("get_webhook", "change_webhook", "test_webhook", "list_webhook_deliveries")
    },
    ("stop_allocation", "200"): {"start_allocation": {"parameters": _STOPPED}},
    ("start_allocation", "200"): {"stop_allocation": {"parameters": _STOPPED}},
}


def complete(result: Document, generator: Any, request: Any, public: bool) -> Document:
    """The document with what belongs to all operations; one of the generator's POSTPROCESSING_HOOKS."""
    # Of the document in the repository nobody asked over the network.
    result["servers"] = [{"url": request.build_absolute_uri("/").rstrip("/") if request else "https://berth.example"}]
    components = result["components"]
    components["headers"] = HEADERS
    _refuse_unknown_fields(result)
    examples = read_examples()
    components["examples"] = {
        f"problem-{status}": {"value": body} for status, body in sorted(examples.get("problems", {}).items())
    }
    for path, methods in result["paths"].items():
        for operation in methods.values():
            _complete_operation(operation, path, examples)
    result["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    return result


@lru_cache(maxsize=1)
def read_examples() -> Document:
    found: Document = json.loads(EXAMPLES.read_text(encoding="utf-8")) if EXAMPLES.exists() else {}
    return found


def _complete_operation(operation: Document, path: str, examples: Document) -> None:
    name = operation["operationId"]
    operation["tags"] = [_TAG_OF.get(path.split("/")[3], "Organization")]
    if "304" in operation["responses"]:
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
    real = examples.get(name, {})
    if "request" in real:
        body = operation["requestBody"]["content"]["application/json"]
        body["examples"] = {"request": {"value": real["request"]}}
    for status, response in operation["responses"].items():
        wanted = [*_EVERYWHERE, *_HEADERS_OF.get(status, ())]
        if "304" in operation["responses"] and status == "200":
            wanted.append("ETag")
        if status == "201":
            wanted.append("Location")
        if (name, status) == ("place_order", "201"):
            wanted.append("Idempotency-Replayed")
        response["headers"] = {header: {"$ref": f"#/components/headers/{header}"} for header in wanted}
        if links := LINKS.get((name, status)):
            response["links"] = {target: {"operationId": target, **link} for target, link in links.items()}
        for media_type, content in response.get("content", {}).items():
            if media_type == "application/problem+json":
                if status in examples.get("problems", {}):
                    content["examples"] = {"problem": {"$ref": f"#/components/examples/problem-{status}"}}
            elif "response" in real:
                content["examples"] = {"answer": {"value": real["response"]}}


def _refuse_unknown_fields(result: Document) -> None:
    """A request has the fields of its schema and no other; answers may get new ones within a version."""
    operations = [operation for methods in result["paths"].values() for operation in methods.values()]
    schemas = result["components"]["schemas"]
    asked = _reachable([operation.get("requestBody") for operation in operations], schemas)
    answered = _reachable([operation["responses"] for operation in operations], schemas)
    for name in asked:
        schema = schemas[name]
        if schema.get("type") == "object" and "properties" in schema:
            assert name not in answered, f"{name} is both asked and answered: give the request a schema of its own"
            schema["additionalProperties"] = False


def _reachable(node: Any, schemas: Document) -> set[str]:
    found: set[str] = set()
    open_nodes = [node]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, dict):
            reference = node.get("$ref", "")
            if isinstance(reference, str) and reference.startswith(_SCHEMAS):
                name = reference.removeprefix(_SCHEMAS)
                if name not in found:
                    found.add(name)
                    open_nodes.append(schemas[name])
            open_nodes += node.values()
        elif isinstance(node, list):
            open_nodes += node
    return found
