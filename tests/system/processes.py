"""The production shape as processes of this machine: what compose.yaml starts, on a PostgreSQL and a Redis of its own.

Commands and environment are read from compose.yaml and the Dockerfile, so neither can drift from what is tested. They
run in a copy of the project, as in the image: whoever edits the checkout meanwhile changes nothing here.
"""

import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import ge
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis
import yaml
from celery import Celery

from tests import services
from tests.system.mail_sink import MailSink

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "staticfiles", "test-artifacts", "docs")
DEADLINE_SECONDS = 60
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def wait_for(what: str, found: Callable[[], Any], seconds: float = DEADLINE_SECONDS) -> Any:
    """The first true answer; a deadline, after which the test gives up."""
    deadline = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)
    return answer


def command_of(service: str) -> list[str]:
    """What compose.yaml runs; without a command of its own, what the image does."""
    if command := COMPOSE["services"][service].get("command"):
        return shlex.split(command)
    found = re.search(r"^CMD (\[.*\])$", DOCKERFILE, re.M)
    assert found
    command_line: list[str] = json.loads(found[1])
    return command_line


class Process:
    """A started service: its main process leads a process group of its own, its output is a file."""

    def __init__(self, service: str, command: list[str], folder: Path, environment: dict[str, str], log: Path) -> None:
        self.service, self.log = service, log
        with log.open("ab") as output:
            self.main = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, preexec_fn=services.die_with_parent,
            )  # fmt: skip

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.main.pid}/task/{self.main.pid}/children").read_text()
        return [int(number) for number in listed.split()]

    def kill(self) -> None:
        """kill -9 of the process and of all its children."""
        try:
            os.killpg(self.main.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.main.wait()

    def stop(self) -> None:
        if self.main.poll() is None:
            self.main.terminate()
            try:
                self.main.wait(20)
            except subprocess.TimeoutExpired:
                pass
        self.kill()


class Shape:
    """PostgreSQL, Redis, a mail server that writes down what it gets, and the services of compose.yaml."""

    def __init__(self, base: Path) -> None:
        self.base, self.servers, self.processes = base, [], []
        self.mails = MailSink()
        self.port = services.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.image = base / "image"
        self._logs = 0
        self._maker: subprocess.Popen[str] | None = None

    def build(self) -> None:
        """What the Dockerfile does, then the servers, then the service `migrate`."""
        shutil.copytree(ROOT, self.image, ignore=LEFT_OUT)
        urls = services.start_postgresql(self.base, self.servers)
        self.postgresql = self.servers[-1]
        redis_url = services.start_redis(self.base, self.servers)
        self.redis = self.servers[-1]
        self.superuser_url, server = urls["TEST_SUPERUSER_URL"], urlsplit(urls["DATABASE_URL"])
        # As servers are delivered: what was answered is on disk, and outlives the server's crash.
        for role in (services.ROLE, services.OWNER):
            self.sql(f"ALTER ROLE {role} SET synchronous_commit = on")
        self.redis_port = urlsplit(redis_url).port
        self._values = {
            "SECRET_KEY": secrets.token_urlsafe(50),
            "DATABASE_PASSWORD": server.password,
            "DATABASE_OWNER_PASSWORD": server.password,
            "POSTGRES_PASSWORD": server.password,
            "EMAIL_URL": f"smtp://127.0.0.1:{self.mails.port}",
        }
        # Where the services are found; in compose.yaml these are names of its own network.
        self._places = {
            "@database:5432/": f"@{server.hostname}:{server.port}/",
            "//redis:6379/": f"//127.0.0.1:{self.redis_port}/",
        }
        found = re.search(r"python manage.py collectstatic[^\\\n]*", DOCKERFILE)
        assert found
        self._run(found[0].split(), self.environment("web"))
        self._run(command_of("migrate"), self.environment("migrate"))

    def environment(self, service: str) -> dict[str, str]:
        environment = {"PATH": f"{Path(sys.executable).parent}:{os.defpath}", "BIND": f"127.0.0.1:{self.port}"}
        for name, value in COMPOSE["services"][service]["environment"].items():
            text = self._interpolated(str(value))
            for place, here in self._places.items():
                text = text.replace(place, here)
            environment[name] = text
        return environment

    def _interpolated(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name, kind, default = match.groups()
            if name in self._values:
                return self._values[name]
            assert kind == "-", f"compose.yaml asks for {name}"
            return default

        return _VARIABLE.sub(value, text)

    # --- Services ---------------------------------------------------------------------------------------------------

    def start(self, service: str, **environment: str) -> Process:
        self._logs += 1
        private = self.base / f"{service}-{self._logs}"
        private.mkdir()
        # Each container has a /tmp of its own.
        command = [part.replace("/tmp/", f"{private}/") for part in command_of(service)]
        log = private / "log"
        process = Process(service, command, self.image, {**self.environment(service), **environment}, log)
        self.processes.append(process)
        if service == "web":
            wait_for("the web workers", lambda: len(process.children()) == 2 and self._answers())
        if service == "worker":
            wait_for("the Celery worker", lambda: " ready." in process.text())
        return process

    def stop(self, *chosen: Process) -> None:
        for process in chosen:
            process.main.terminate()
        for process in chosen:
            process.stop()
            self.processes.remove(process)

    def _answers(self) -> bool:
        return subprocess.run(self._healthcheck(), env=self.environment("web"), capture_output=True).returncode == 0

    def _healthcheck(self) -> list[str]:
        """compose.yaml's own question whether the web service is up, asked at our port."""
        _, _program, *arguments = COMPOSE["services"]["web"]["healthcheck"]["test"]
        return [sys.executable, *(part.replace(":8000/", f":{self.port}/") for part in arguments)]

    def web_is_up(self) -> bool:
        return any(process.service == "web" and process.main.poll() is None for process in self.processes)

    def web_workers(self) -> list[int]:
        return next(process for process in self.processes if process.service == "web").children()

    def _run(self, command: list[str], environment: dict[str, str]) -> str:
        result = subprocess.run(
            command, cwd=self.image, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def manage(self, *arguments: str) -> str:
        return self._run(["python", "manage.py", *arguments], self.environment("web"))

    def make(self, function: str, **arguments: Any) -> Any:
        """Rows made by a function of tests/system/rows.py, in a process with production's settings and role."""
        if self._maker is None:
            code = "from tests.system.rows import serve; serve()"
            self._maker = subprocess.Popen(
                ["python", "manage.py", "shell", "--no-imports", "-c", code],
                cwd=self.image, env=self.environment("web"), text=True, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                preexec_fn=services.die_with_parent,
            )  # fmt: skip
        assert self._maker.stdin
        assert self._maker.stdout
        self._maker.stdin.write(json.dumps([function, arguments]) + "\n")
        self._maker.stdin.flush()
        answer = json.loads(self._maker.stdout.readline())
        assert "made" in answer, answer
        return answer["made"]

    def check_invariants(self) -> None:
        assert "rules hold" in self.manage("check_invariants")

    def send_task(self, name: str) -> None:
        """What beat does when a task's time has come."""
        with Celery(broker=f"redis://127.0.0.1:{self.redis_port}/0") as sender:
            sender.send_task(name)

    # --- PostgreSQL -------------------------------------------------------------------------------------------------

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Rows as the superuser sees them: all of them."""
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *values: Any) -> Any:
        return self.sql(statement, *values)[0][0]

    @contextmanager
    def holding(self, statement: str, *values: Any) -> Iterator[psycopg.Connection[Any]]:
        """A transaction that holds rows until the block ends; values in their order, or one dictionary."""
        named = values and isinstance(values[0], dict)
        with psycopg.connect(self.superuser_url) as connection:
            assert connection.execute(statement, values[0] if named else values).fetchall()
            yield connection
            connection.rollback()

    def blocked(self, words: str) -> tuple[int, int]:
        """The backend that waits for a lock in a statement with these words, and the port of its client."""
        found = wait_for(
            f"a backend that waits in {words}",
            lambda: self.sql(
                "SELECT pid, client_port FROM pg_stat_activity WHERE usename = %s AND wait_event_type = 'Lock'"
                " AND query LIKE %s",
                services.ROLE, f"%{words}%",
            ),
        )  # fmt: skip
        return found[0]

    def stop_postgresql(self) -> None:
        """Immediate shutdown: every connection is cut, nothing is written down; the start recovers."""
        self.postgresql.send_signal(signal.SIGQUIT)
        self.postgresql.wait()

    def start_postgresql(self) -> None:
        account, environment = services.unprivileged_account(), {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        log = self.base / f"postgresql-{time.monotonic_ns()}.log"
        command = self.postgresql.args
        self.postgresql = services.spawn(command, log, self.servers, env=environment, **account)
        services.wait_until(lambda: str(self.sql("SELECT 1")), psycopg.OperationalError, self.postgresql, log)

    # --- Redis ------------------------------------------------------------------------------------------------------

    def redis_client(self) -> redis.Redis:
        return redis.Redis(port=self.redis_port)

    def stop_redis(self) -> None:
        self.redis.kill()
        self.redis.wait()

    def wait_until_missed(self, tries: int = 3) -> None:
        """Redis is away: until each worker and each beat has said so many times that nobody answers there."""
        asking = [process for process in self.processes if process.service in ("worker", "beat")]
        assert asking

        def said() -> list[int]:
            return [sum("Connection refused" in line for line in each.text().splitlines()) for each in asking]

        wanted = [number + tries for number in said()]
        wait_for("the tries", lambda: all(map(ge, said(), wanted)))

    def start_redis(self) -> None:
        log = self.base / f"redis-{time.monotonic_ns()}.log"
        self.redis = services.spawn(self.redis.args, log, self.servers)
        services.wait_until(
            lambda: str(self.redis_client().ping()), redis.ConnectionError, self.redis, log
        )  # fmt: skip

    # --- The end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        if self._maker is not None:
            self._maker.kill()
            self._maker.wait()
        for server in reversed(self.servers):
            services.stop(server)
        self.mails.close()


def process_of(port: int, candidates: list[int]) -> int:
    """Which of the processes has the connection whose own port this is."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inodes = {line.split()[9] for line in lines if int(line.split()[1].rpartition(":")[2], 16) == port}
    for number in candidates:
        for descriptor in Path(f"/proc/{number}/fd").iterdir():
            try:
                target = os.readlink(descriptor)
            except FileNotFoundError:
                continue
            if target.removeprefix("socket:[").removesuffix("]") in inodes:
                return number
    raise AssertionError(f"none of {candidates} has port {port}")
