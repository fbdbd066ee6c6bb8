"""Requests to addresses that others chose: what they may reach, how long, how much, and what they never tell."""

from __future__ import annotations

import logging
import socket
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from catalog.outgoing import Failed, Fetched, OutgoingError, Refused, fetch, parse, retry_after_seconds
from catalog.outgoing.public import is_public
from tests.hostile_answers import hostile_answers, slow_answers
from tests.stub_server import Asked, Internet, StubServer, endless, internet, redirect, respond

PUBLIC, OTHER_PUBLIC = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def sink() -> Iterator[StubServer]:
    """A server of the inside: nothing may reach it."""
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, stub: StubServer) -> Iterator[Internet]:
    """The stub is a public server called feed.example."""
    with internet(monkeypatch) as net:
        net.names["feed.example"] = [[PUBLIC]]
        net.reach(PUBLIC, stub.port)
        yield net


def refusal(url: str) -> OutgoingError:
    with pytest.raises(OutgoingError) as caught:
        fetch(url, seconds=5)
    return caught.value


@pytest.mark.parametrize("name", hostile_answers())
def test_a_hostile_answer_ends_as_it_should(name: str, stub: StubServer, sink: StubServer, world: Internet) -> None:
    world.names["inside.example"] = [["127.0.0.1"]]
    case = hostile_answers(sink.port)[name]
    stub.answers["/feed"] = stub.answers["/loop"] = case.answer
    if case.code is None:
        fetched = fetch("http://feed.example/feed", seconds=20).expect_success()
        assert isinstance(case.answer, bytes)
        assert case.answer.endswith(b"\r\n\r\n" + fetched.content)
    else:
        with pytest.raises(OutgoingError) as caught:
            fetch("http://feed.example/feed", seconds=20).expect_success()
        assert caught.value.code == case.code
        says_when = case.code.startswith("status_") and case.code != "status_301"
        assert caught.value.retry_after == (120 if says_when else None)
    assert stub.asked
    assert sink.connections == 0


@pytest.mark.parametrize("name", slow_answers())
def test_a_server_that_drips_is_left_at_the_deadline(name: str, stub: StubServer, world: Internet) -> None:
    stub.answers["/feed"] = slow_answers()[name].answer
    with pytest.raises(Failed) as caught:
        fetch("http://feed.example/feed", seconds=1.5)
    assert caught.value.code == "too_slow"


def test_redirects_share_one_deadline(stub: StubServer, world: Internet) -> None:
    def later(asked: Asked) -> Iterator[bytes]:
        threading.Event().wait(0.4)
        yield redirect("/feed")

    stub.answers["/feed"] = later
    with pytest.raises(Failed) as caught:
        fetch("http://feed.example/feed", seconds=1)
    assert caught.value.code == "too_slow"
    assert len(stub.asked) < 5


def test_a_resolver_that_hangs_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()

    def hangs(*args: object, **kwargs: object) -> list[object]:
        hang.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    with pytest.raises(Failed) as caught:
        fetch("http://feed.example/", seconds=0.2)
    hang.set()
    assert caught.value.code == "too_slow"


def test_a_server_that_does_not_read_is_left_at_the_deadline(world: Internet) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        world.reach(PUBLIC, deaf.getsockname()[1])
        with pytest.raises(Failed) as caught:
            fetch("http://feed.example/hook", method="POST", content=b"x" * 50_000_000, seconds=1)
    assert caught.value.code == "too_slow"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
        *("::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1"),
        *("fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        *("2002:7f00:1::", "2001:0:7f00:1::", "3fff::1", "2606:4700:4700::1111%1", "no address"),
    ],
)
def test_what_is_not_of_the_public_internet_is_not_asked(address: str, sink: StubServer, world: Internet) -> None:
    assert not is_public(address)
    world.names["trap.example"] = [[address]]
    error = refusal(f"http://trap.example:{sink.port}/")
    assert (type(error), error.code) == (Refused, "address_not_public")
    assert world.connected == []


@pytest.mark.parametrize("address", [PUBLIC, OTHER_PUBLIC, "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.128.0.1"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


def test_the_address_that_was_checked_is_the_one_connected_to(
    stub: StubServer, sink: StubServer, world: Internet
) -> None:
    """A name that is public when it is checked and of the inside when it is asked again."""
    stub.answers["/"] = respond(200, b"[]")
    world.names["rebinding.example"] = [[PUBLIC], ["127.0.0.1"]]
    url = f"http://rebinding.example:{sink.port}/"
    assert fetch(url).content == b"[]"
    assert world.resolved["rebinding.example"] == 1
    assert refusal(url).code == "address_not_public"
    assert world.connected == [PUBLIC]
    assert sink.connections == 0


def test_a_redirect_to_a_name_that_has_turned_inside_is_refused(
    stub: StubServer, sink: StubServer, world: Internet
) -> None:
    stub.answers["/"] = redirect(f"http://rebinding.example:{sink.port}/")
    world.names["rebinding.example"] = [[PUBLIC], ["10.0.0.7"]]
    # The second hop is resolved anew, and so is each after it.
    assert refusal(f"http://rebinding.example:{sink.port}/").code == "address_not_public"
    assert sink.connections == 0


def test_a_name_that_means_a_private_address_among_public_ones_is_refused(world: Internet) -> None:
    world.names["mixed.example"] = [[PUBLIC, "127.0.0.1"]]
    assert refusal("http://mixed.example/").code == "address_not_public"
    assert world.connected == []


def test_the_next_address_is_tried_when_one_takes_no_connections(stub: StubServer, world: Internet) -> None:
    stub.answers["/"] = respond(200, b"[]")
    world.names["two.example"] = [[OTHER_PUBLIC, PUBLIC]]
    assert fetch("http://two.example/").content == b"[]"
    assert world.connected == [OTHER_PUBLIC, PUBLIC]


def test_an_address_of_the_allow_list_may_be_asked_on_its_port_alone(
    stub: StubServer, sink: StubServer, settings
) -> None:
    settings.OUTGOING_ALLOWED = [f"127.0.0.1:{stub.port}"]
    stub.answers["/"] = respond(200, b"[]")
    stub.answers["/away"] = redirect(f"{sink.address}/")
    assert fetch(f"{stub.address}/").content == b"[]"
    assert refusal(f"{stub.address}/away").code == "address_not_public"
    assert refusal(f"{sink.address}/").code == "address_not_public"
    assert refusal(f"http://localhost:{stub.port}/").code == "url_host"
    assert sink.connections == 0


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "url_scheme"),
        ("feed.example/feed", "url_scheme"),
        ("ftp://feed.example/", "url_scheme"),
        ("file:///etc/passwd", "url_scheme"),
        ("javascript:alert(1)", "url_scheme"),
        ("http://", "url_host"),
        ("http:///feed", "url_host"),
        ("http://user:s3cret@feed.example/", "url_userinfo"),
        ("http://feed..example/", "url_host"),
        (f"http://{'a' * 64}.example/", "url_host"),
        (f"http://{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 63}.example/", "url_host"),
        ("http://localhost/", "url_host"),
        ("http://localhost./", "url_host"),
        ("http://redis:6379/", "url_host"),
        ("http://127.1/", "url_host"),
        ("http://2130706433/", "url_host"),
        ("http://0x7f000001/", "url_host"),
        ("http://0x7f.0.0.1/", "url_host"),
        ("http://017700000001/", "url_host"),
        ("http://0177.0.0.01/", "url_invalid"),
        ("http://127.0.0.1./", "address_not_public"),
        ("http://127。0。0。1/", "address_not_public"),
        ("http://①②⑦.⓪.⓪.①/", "url_invalid"),
        ("http://%31%32%37.0.0.1/", "url_host"),
        ("http://[::1]/", "address_not_public"),
        ("http://[fe80::1%25eth0]/", "address_not_public"),
        ("http://[::1", "url_invalid"),
        ("http://feed.example:0/", "url_port"),
        ("http://feed.example:65536/", "url_port"),
        ("http://feed.example:s3cret/", "url_invalid"),
        ("http://fe ed.example/", "url_host"),
        ("http://feed.example/\n", None),
        ("http://feed.example/\nX: s3cret", "url_invalid"),
        ("http://feed.example/?" + "k" * 2000, "url_too_long"),
    ],
)
def test_addresses_that_cannot_be_asked_are_refused_by_their_spelling(url: str, code: str | None) -> None:
    if code is None:
        assert parse(url).host == "feed.example"
        return
    with pytest.raises(Refused) as caught:
        parse(url)
    assert caught.value.code == code
    assert "s3cret" not in caught.value.detail


def test_a_name_in_another_script_and_a_dot_at_the_end_are_the_same_host(stub: StubServer, world: Internet) -> None:
    stub.answers["/"] = respond(200, b"[]")
    world.names["xn--mller-kva.example"] = [[PUBLIC]]
    assert fetch("http://MÜLLER.example./").status == 200
    assert stub.asked[0].headers["host"] == "xn--mller-kva.example"


def test_what_a_caller_sends_stays_with_the_origin_it_was_meant_for(stub: StubServer, world: Internet) -> None:
    world.names["elsewhere.example"] = [[PUBLIC]]
    stub.answers["/feed"] = redirect("/here?key=of-the-stub", Set_Cookie="session=stolen; Path=/")
    stub.answers["/here"] = redirect("http://elsewhere.example/there")
    stub.answers["/there"] = redirect("http://feed.example/back")
    stub.answers["/back"] = respond(200, b"[]")
    headers = {"X-Feed-Key": "s3cret", "Authorization": "Bearer s3cret", "Host": "inside", "Cookie": "a=b"}
    assert fetch("http://feed.example/feed?token=s3cret", headers=headers).content == b"[]"
    first, here, there, back = stub.asked
    assert first.headers["x-feed-key"] == here.headers["x-feed-key"] == "s3cret"
    assert first.headers["host"] == "feed.example"
    for asked in (there, back):
        assert "s3cret" not in str(asked)
    for asked in stub.asked:
        assert "cookie" not in asked.headers
        assert "referer" not in asked.headers


def test_a_post_is_sent_as_it_is_and_follows_no_redirect(stub: StubServer, sink: StubServer, world: Internet) -> None:
    stub.answers["/hook"] = redirect(f"{sink.address}/", status=307)
    answer = fetch(
        "http://feed.example/hook", method="POST", headers={"Content-Type": "application/json"}, content=b"{}"
    )
    assert (answer.status, answer.content) == (307, b"")
    assert (stub.asked[0].method, stub.asked[0].body) == ("POST", b"{}")
    assert sink.connections == 0
    with pytest.raises(Failed, match="answers 307"):
        answer.expect_success()


def test_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, stub: StubServer, sink: StubServer, world: Internet
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, sink.address)
    stub.answers["/"] = respond(200, b"[]")
    assert fetch("http://feed.example/").content == b"[]"
    assert sink.connections == 0


def test_a_body_may_be_cut_where_its_end_does_not_matter(stub: StubServer, world: Internet) -> None:
    stub.answers["/"] = respond(200, b"x" * 5000)
    assert fetch("http://feed.example/", most_bytes=1000, cut=True).content == b"x" * 1000
    assert fetch("http://feed.example/", most_bytes=5000).content == b"x" * 5000
    with pytest.raises(Failed) as caught:
        fetch("http://feed.example/", most_bytes=4999)
    assert caught.value.code == "too_large"


def test_a_status_counts_even_when_the_words_beside_it_never_end(stub: StubServer, world: Internet) -> None:
    head = respond(429, Content_Length="1000000000", Retry_After="7")
    stub.answers["/much"] = endless(b"x" * 65536, head)
    stub.answers["/slow"] = endless(b"x", head, every_seconds=1)
    for path in ("/much", "/slow"):
        answer = fetch(f"http://feed.example{path}", seconds=1.5)
        assert (answer.status, answer.retry_after) == (429, 7)
        assert len(answer.content) <= 64 * 1024


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("120", 120),
        (" 0 ", 0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("9" * 10, 86_400),
        ("9" * 5000, None),
        ("Mon, 30 Nov 2026 12:01:30 GMT", 90),
        ("Monday, 30-Nov-26 12:01:30 GMT", 90),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("Mon, 30 Nov 2036 11:00:00 GMT", 86_400),
        ("Mon, 99 Nov 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(value: str | None, seconds: int | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize("path", ["/feed", "/moved", "/broken", "/gone"])
def test_no_secret_is_in_a_log_or_an_error(
    path: str, stub: StubServer, world: Internet, caplog: pytest.LogCaptureFixture
) -> None:
    stub.answers["/feed"] = respond(200, b"[]")
    stub.answers["/moved"] = redirect("http://10.0.0.1/?token=s3cret")
    stub.answers["/broken"] = b"s3cret"
    # As when an operator looks for a fault.
    logging.getLogger().setLevel(logging.DEBUG)
    caplog.set_level(logging.DEBUG)
    headers = {"Authorization": "Bearer s3cret", "X-Feed-Key": "s3cret\n" if path == "/gone" else "s3cret"}
    url = f"http://feed.example{path}?api_key=s3cret"
    if path == "/feed":
        assert fetch(url, headers=headers).status == 200
    else:
        with pytest.raises(OutgoingError) as caught:
            fetch(url, headers=headers).expect_success()
        error = caught.value
        # The line of this test that is in the trace names a variable, not the address.
        assert "s3cret" not in "".join(traceback.format_exception(error)) + error.detail + repr(error)
    assert "s3cret" not in caplog.text


def test_every_2xx_is_a_success() -> None:
    answer = Fetched(204, {}, b"", 0)
    assert answer.expect_success() is answer
