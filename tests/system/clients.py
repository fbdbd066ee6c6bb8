"""Clients as they are: a partner's program with a key, and a browser that signs in. Both come through the proxy."""

import json
import random
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.factories import PASSWORD

# Nobody waits longer for an answer.
PATIENCE_SECONDS = 10
# What the proxy that speaks HTTPS adds.
FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
ORDERS, LOGIN = "/api/v1/orders", "/accounts/login/"


def order_body(machine: int, lots: int = 1, **fields: Any) -> dict[str, Any]:
    return {"machine": machine, "term_days": 7, "lots": lots, "expected_total_usd": f"{110 * lots}.00", **fields}


class ApiClient:
    def __init__(self, url: str, key: str) -> None:
        self.url, self.headers = url, {**FORWARDED, "Authorization": f"Bearer {key}"}
        self._client = httpx2.Client(base_url=url, headers=self.headers, timeout=PATIENCE_SECONDS)

    def order(self, key: str | None, body: dict[str, Any]) -> httpx2.Response:
        headers = {} if key is None else {"Idempotency-Key": key.encode()}
        return self._client.post(ORDERS, json=body, headers=headers)

    def get(self, path: str) -> httpx2.Response:
        return self._client.get(path)

    def order_and_leave(self, key: str, body: dict[str, Any]) -> None:
        """Send the request whole and close the connection without reading the answer."""
        place, content = urlsplit(self.url), json.dumps(body).encode()
        headers = {
            **self.headers, "Host": place.netloc, "Content-Type": "application/json", "Idempotency-Key": key,
            "Content-Length": str(len(content)),
        }  # fmt: skip
        head = f"POST {ORDERS} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with socket.create_connection((place.hostname or "", place.port or 0), PATIENCE_SECONDS) as connection:
            connection.sendall(head.encode() + b"\r\n" + content)

    def close(self) -> None:
        self._client.close()


class Browser:
    """Signs in with a form, keeps its cookies although the last stretch is plain HTTP, and sends forms as they are."""

    def __init__(self, url: str, email: str) -> None:
        self.email, self.cookies = email, dict[str, str]()
        headers = {**FORWARDED, "Origin": f"https://{urlsplit(url).netloc}"}
        self._client = httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS)
        response = self.post(LOGIN, self.form(LOGIN, {"login": email, "password": PASSWORD}))
        assert (response.status_code, "sessionid" in self.cookies) == (302, True), response.text

    def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response = self._client.request(method, path, headers={"Cookie": cookies}, **options)
        for line in response.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return response

    def get(self, path: str) -> httpx2.Response:
        return self.request("GET", path)

    def form(self, path: str, changes: dict[str, str]) -> dict[str, str]:
        """What a browser would send for the page's form, once it is filled in."""
        page = self.get(path)
        assert page.status_code == 200, (page.status_code, page.text)
        return {**read_form(page.text, path.partition("?")[0]), **changes}

    def post(self, path: str, fields: dict[str, str]) -> httpx2.Response:
        return self.request("POST", path, data=fields)

    def review(self, slug: str, machine: int, lots: int = 1) -> dict[str, str]:
        """The review page's form, as it stands before the button is pressed."""
        return self.form(f"{review_path(slug)}?machine={machine}&term_days=7&lots={lots}", {"confirm": "1"})

    def confirm(self, slug: str, fields: dict[str, str]) -> httpx2.Response:
        return self.post(review_path(slug), fields)

    def close(self) -> None:
        self._client.close()


def review_path(slug: str) -> str:
    return f"/o/{slug}/orders/review/"


def read_form(html: str, action: str) -> dict[str, str]:
    """What a browser would send for the form with this action, or without one: its buttons apart."""
    forms = re.findall(r"<form[^>]*>.*?</form>", html, re.S)
    posted = [form for form in forms if 'method="post"' in form]
    form = next((form for form in posted if f'action="{action}"' in form), None)
    form = form or next(form for form in posted if "action=" not in form.partition(">")[0])
    found: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        kind = attributes.get("type")
        ticked = kind not in ("radio", "checkbox", "submit") or (kind != "submit" and re.search(r"\bchecked\b", tag))
        if ticked and "name" in attributes:
            found[attributes["name"]] = unescape(attributes.get("value", ""))
    for name, body in re.findall(r'<select[^>]*name="([\w-]+)"[^>]*>(.*?)</select>', form, re.S):
        chosen = re.search(r'<option value="([^"]*)" selected', body) or re.search(r'<option value="([^"]*)"', body)
        found[name] = unescape(chosen[1]) if chosen else ""
    for name, body in re.findall(r'<textarea[^>]*name="([\w-]+)"[^>]*>(.*?)</textarea>', form, re.S):
        found[name] = unescape(body.strip())
    return found


def at_once(acts: list[Callable[[], Any]], shuffle: int | None = None) -> list[Any]:
    """The answers of all acts, which start together, each in a thread of its own."""
    barrier = threading.Barrier(len(acts))
    order = list(range(len(acts)))
    if shuffle is not None:
        random.Random(shuffle).shuffle(order)

    def run(number: int) -> Any:
        barrier.wait(60)
        return acts[number]()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, order))
