"""What changed between two OpenAPI documents that a client written for the first would notice.

Within v1 there may be new operations, new optional fields and parameters of requests, new fields of answers, new codes,
new words of an answer's enumeration, and wider limits. Everything else is a breaking change and needs a v2.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")


def breaking_changes(old: Document, new: Document) -> list[str]:
    """Every breaking change, each with its place; empty when a client of `old` goes on with `new`."""
    return _Comparison(old, new).found


class _Comparison:
    def __init__(self, old: Document, new: Document) -> None:
        self.old, self.new, self.found = old, new, list[str]()
        self._open: set[tuple[str, str, bool]] = set()
        for path, methods in old["paths"].items():
            for method in _METHODS:
                if method in methods:
                    self._operation(f"{method.upper()} {path}", methods[method], new["paths"].get(path, {}).get(method))

    def _operation(self, at: str, old: Document, new: Document | None) -> None:
        if new is None:
            self.found.append(f"{at}: gone")
            return
        if old["operationId"] != new["operationId"]:
            self.found.append(f"{at}: operationId is {new['operationId']}, was {old['operationId']}")
        self._parameters(at, old, new)
        if "requestBody" not in old and new.get("requestBody", {}).get("required"):
            self.found.append(f"{at}: needs a body")
        for media_type, content in old.get("requestBody", {}).get("content", {}).items():
            given = new.get("requestBody", {}).get("content", {}).get(media_type)
            if given is None:
                self.found.append(f"{at}: no longer takes {media_type}")
            else:
                self._asked(f"{at} body", content["schema"], given["schema"])
        for status, answer in old["responses"].items():
            if status not in new["responses"]:
                self.found.append(f"{at}: {status} is gone")
                continue
            for media_type, content in answer.get("content", {}).items():
                given = new["responses"][status].get("content", {}).get(media_type)
                if given is None:
                    self.found.append(f"{at} {status}: no longer {media_type}")
                else:
                    self._answered(f"{at} {status}", content["schema"], given["schema"])

    def _parameters(self, at: str, old: Document, new: Document) -> None:
        before = {(each["in"], each["name"]): each for each in old.get("parameters", [])}
        after = {(each["in"], each["name"]): each for each in new.get("parameters", [])}
        for key, parameter in before.items():
            if key not in after:
                self.found.append(f"{at}: parameter {key[1]} is gone")
            else:
                self._asked(f"{at} {key[1]}", parameter["schema"], after[key]["schema"])
        for key, parameter in after.items():
            if parameter.get("required") and not before.get(key, {}).get("required"):
                self.found.append(f"{at}: parameter {key[1]} is required")

    def _asked(self, at: str, old: Document, new: Document) -> None:
        """What a client may send must still be taken."""
        old, new = self._resolved(old, self.old), self._resolved(new, self.new)
        if self._seen(at, old, new, asked=True):
            return
        self._kinds(at, old, new, asked=True)
        for name in set(new.get("required", [])) - set(old.get("required", [])):
            self.found.append(f"{at}.{name}: is required")
        for name, shape in old.get("properties", {}).items():
            if name not in new.get("properties", {}):
                self.found.append(f"{at}.{name}: is gone")
            else:
                self._asked(f"{at}.{name}", shape, new["properties"][name])
        if gone := [word for word in old.get("enum", []) if "enum" in new and word not in new["enum"]]:
            self.found.append(f"{at}: no longer takes {', '.join(map(str, gone))}")
        for limit, narrower in (("maximum", min), ("maxLength", min), ("maxItems", min), ("minimum", max),
                                ("minLength", max), ("minItems", max)):  # fmt: skip
            now, before = new.get(limit), old.get(limit)
            if now is not None and now != before and (before is None or narrower(now, before) == now):
                self.found.append(f"{at}: {limit} is {now}, was {before or 'none'}")
        if new.get("pattern") != old.get("pattern") and "pattern" in new:
            self.found.append(f"{at}: another pattern")
        if "items" in old and "items" in new:
            self._asked(f"{at}[]", old["items"], new["items"])

    def _answered(self, at: str, old: Document, new: Document) -> None:
        """What a client reads must still be there, and of the same kind."""
        old, new = self._resolved(old, self.old), self._resolved(new, self.new)
        if self._seen(at, old, new, asked=False):
            return
        self._kinds(at, old, new, asked=False)
        for name, shape in old.get("properties", {}).items():
            if name not in new.get("properties", {}):
                self.found.append(f"{at}.{name}: is gone")
                continue
            if name in old.get("required", []) and name not in new.get("required", []):
                self.found.append(f"{at}.{name}: may be missing")
            self._answered(f"{at}.{name}", shape, new["properties"][name])
        if "items" in old and "items" in new:
            self._answered(f"{at}[]", old["items"], new["items"])

    def _kinds(self, at: str, old: Document, new: Document, *, asked: bool) -> None:
        before, after = _kinds_of(old), _kinds_of(new)
        if not before or not after:
            if asked and not before and after:
                self.found.append(f"{at}: takes {', '.join(sorted(after))} alone")
            return
        lost = before - after if asked else after - before
        if lost:
            self.found.append(f"{at}: {'no longer takes' if asked else 'may be'} {', '.join(sorted(lost))}")

    def _seen(self, at: str, old: Document, new: Document, *, asked: bool) -> bool:
        # A component is compared once: every place that uses it would say the same.
        pair = (old.get("$name", ""), new.get("$name", ""), asked)
        if not pair[0]:
            return False
        seen = pair in self._open
        self._open.add(pair)
        return seen

    def _resolved(self, shape: Document, document: Document) -> Document:
        """The schema with references followed; `null` beside one kind of thing becomes a kind of it."""
        if "$ref" in shape:
            name = shape["$ref"].rpartition("/")[2]
            return {**self._resolved(document["components"]["schemas"][name], document), "$name": name}
        if len(shape.get("allOf", [])) == 1:
            return {**shape, **self._resolved(shape["allOf"][0], document), "allOf": []}
        options: list[Document] = shape.get("oneOf") or shape.get("anyOf") or []
        real = [self._resolved(one, document) for one in options if one != {"type": "null"}]
        if len(real) == 1 and len(options) == 2:
            return {**real[0], "type": sorted({*_kinds_of(real[0]), "null"})}
        return shape


def _kinds_of(shape: Document) -> set[str]:
    kinds = shape.get("type", [])
    return {kinds} if isinstance(kinds, str) else set(kinds)
