"""“Do this with the API”: the requests that do what a page shows, as commands for a shell and as a program.

Both are ready to paste, but for the key of an organization where one is needed.
"""

from __future__ import annotations

import json
import pprint
from dataclasses import dataclass, field
from typing import Any

_KEY = "Bearer <your API key>"
_WIDTH = 100


@dataclass(frozen=True)
class Call:
    """One request. `remark` is what to know before it is sent."""

    address: str
    body: dict[str, Any] | None = None
    method: str = "GET"
    remark: str = ""
    headers: dict[str, str] = field(default_factory=dict)


class Program:
    """The same requests in both languages; `with_key` where an organization asks."""

    def __init__(self, *calls: Call, with_key: bool = False) -> None:
        self.calls, self.with_key = calls, with_key

    @property
    def curl(self) -> str:
        return "\n\n".join(self._command(call) for call in self.calls)

    def _command(self, call: Call) -> str:
        headers = {**({"Authorization": _KEY} if self.with_key else {}), **call.headers}
        parts = [f"curl {call.address}" if call.method == "GET" else f"curl -X {call.method} {call.address}"]
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        parts += [f"-H '{name}: {value}'" for name, value in headers.items()]
        if call.body is not None:
            # A quote in a note cannot end the body.
            text = json.dumps(call.body, ensure_ascii=False).replace("'", "\\u0027")
            parts.append(f"-d '{text}'")
        return _remarked(call, " \\\n  ".join(parts))

    @property
    def python(self) -> str:
        head = ["import requests"]
        if self.with_key:
            head += ["", f'key = {{"Authorization": "{_KEY}"}}']
        return "\n".join(head) + "\n\n" + "\n\n".join(self._statements(call) for call in self.calls)

    def _statements(self, call: Call) -> str:
        arguments = [f'"{call.address}"']
        if headers := [*(["**key"] if self.with_key else []), *(f'"{n}": "{v}"' for n, v in call.headers.items())]:
            arguments.append(f"headers={{{', '.join(headers)}}}")
        if call.body is not None:
            arguments.append(f"json={_literal(call.body)}")
        lines = [f"answer = requests.{call.method.lower()}("]
        lines += [f"    {argument}," for argument in (*arguments, "timeout=30")]
        lines += [")", "if not answer.ok:", "    raise SystemExit(answer.text)", "print(answer.text)"]
        return _remarked(call, "\n".join(lines))


def _remarked(call: Call, text: str) -> str:
    return f"# {call.remark}\n{text}" if call.remark else text


def _literal(body: dict[str, Any]) -> str:
    """The body as Python writes it, its further lines as far in as the argument's."""
    return pprint.pformat(body, width=_WIDTH, sort_dicts=False).replace("\n", "\n    " + " " * len("json="))
