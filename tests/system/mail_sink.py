"""A mail server of a few lines: it takes every mail and keeps it, or keeps a sender waiting where a test says so."""

import email
import email.message
import socketserver
import threading
from collections import Counter


class _Conversation(socketserver.StreamRequestHandler):
    server: "_Server"

    def handle(self) -> None:
        self._say("220 sink")
        recipients: list[str] = []
        while line := self.rfile.readline():
            words = line.decode(errors="replace").strip()
            match words[:4].upper():
                case "RCPT":
                    recipients.append(words.partition("<")[2].partition(">")[0])
                    self._say("250 ok")
                case "DATA":
                    self._say("354 go on")
                    self._take(recipients)
                    recipients = []
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 ok")

    def _take(self, recipients: list[str]) -> None:
        data = b""
        while (line := self.rfile.readline()) and line != b".\r\n":
            data += line
        sink = self.server.sink
        with sink.lock:
            message = email.message_from_bytes(data)
            sink.taken += [(recipient, str(message["Subject"]), message) for recipient in recipients]
            hold = len(sink.taken) == sink.hold_at
        if hold:
            # The mail is taken, and its sender does not learn of it.
            sink.held.set()
            sink.release.wait(60)
        self._say("250 taken")

    def _say(self, words: str) -> None:
        self.wfile.write(words.encode() + b"\r\n")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    sink: "MailSink"

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that was killed in the middle is what some tests are about."""


class MailSink:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken: list[tuple[str, str, email.message.Message]] = []
        self.hold_at: int | None = None
        self.held, self.release = threading.Event(), threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Conversation)
        self._server.sink = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def counted(self) -> Counter[tuple[str, str]]:
        """How often each mail came: recipient and subject, which names the order and what became of it."""
        with self.lock:
            return Counter((recipient, subject) for recipient, subject, _ in self.taken)

    def empty(self) -> None:
        with self.lock:
            self.taken, self.hold_at = [], None
        self.held.clear()
        self.release.clear()

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
