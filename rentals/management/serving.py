"""Who serves the demo's data, and at which port, so that one demo never takes them from under another.

Locks of the operating system (flock) on files beside the database: they end with the process that holds them, however
it ends, and pass on to the web server that the command becomes.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.core.management.base import CommandError

HOST = "127.0.0.1"
PREPARING_SECONDS = 120


def port_number(text: str) -> int:
    """The port in `PORT=…`.

    Raises: CommandError naming what a port is.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        given = f"“{text[:40]}”" if text.strip() else "Nothing"
        raise CommandError(f"{given} is no port: choose a number from 1 to 65535, for example make demo PORT=8123")
    return int(text)


def bound_socket(port: int) -> socket.socket:
    """The port, taken before any work is done; nobody is answered until `listen`.

    Raises: CommandError saying why the port cannot be had.
    """
    taken = socket.socket()
    # As gunicorn does: connections of a server that just ended do not count as a server.
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((HOST, port))
    except PermissionError as error:
        raise CommandError(f"Port {port} is for root alone: choose another, make demo PORT=8123") from error
    except OSError as error:
        raise CommandError(_taken(port)) from error
    return taken


def listen(bound: socket.socket) -> None:
    """From here on the port answers. Two may have bound it, and one of them is told so here.

    Raises: CommandError.
    """
    try:
        bound.listen(2048)
    except OSError as error:
        raise CommandError(_taken(bound.getsockname()[1])) from error
    bound.set_inheritable(True)


def _taken(port: int) -> str:
    return f"Port {port} is taken: end what uses it, or choose another, make demo PORT=8123"


@contextmanager
def preparing(database: Path, say: Callable[[str], object]) -> Iterator[None]:
    """One process at a time makes tables and data; the next one says that it waits.

    Raises: CommandError when the other does not come to an end.
    """
    with _named(database, "preparing").open("a") as file:
        if not _locked(file):
            say("Another demo is preparing the same data: waiting for it.\n")
            deadline = time.monotonic() + PREPARING_SECONDS
            while not _locked(file):
                if time.monotonic() > deadline:
                    raise CommandError(f"Another demo has been preparing {database} for too long: end it, then again.")
                time.sleep(0.1)
        yield


def serving_ports(database: Path) -> list[int]:
    """The ports at which running demos serve these data."""
    ports = []
    for path in database.parent.glob(f"{database.name}.port-*.lock"):
        with path.open("a") as file:
            if not _locked(file):
                ports.append(int(path.stem.rpartition("-")[2]))
    return sorted(ports)


def refuse_served(database: Path) -> None:
    """Data that somebody looks at are not deleted.

    Raises: CommandError naming the port.
    """
    if ports := serving_ports(database):
        named = " and ".join(map(str, ports))
        raise CommandError(
            f"{database} is in use by port {named}: end that demo first, then start over with make demo RESET=1"
        )


def hold(database: Path, port: int) -> None:
    """Serve the data at the port, for as long as this process and the server it becomes live."""
    file = _named(database, f"port-{port}").open("a")
    _locked(file)
    # A copy that nobody closes: neither the garbage collector nor exec.
    os.set_inheritable(os.dup(file.fileno()), True)


def _named(database: Path, name: str) -> Path:
    return database.with_name(f"{database.name}.{name}.lock")


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
