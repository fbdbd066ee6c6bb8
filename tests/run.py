"""Run the suites one after the other and add them up: `python tests/run.py core` or `system`; see the Makefile.

BROWSER=0 leaves the browser journeys out of `core`. The exit code is 0 only when every part passed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
NO_TESTS_COLLECTED = 5
SERVERS = ("DATABASE_URL", "DATABASE_OWNER_URL", "TEST_SUPERUSER_URL", "REDIS_URL")


@dataclass(frozen=True)
class Part:
    """One run of pytest, and what it came to."""

    name: str
    options: tuple[str, ...]
    servers: bool = True


CORE = (
    Part("SQLite", ("-m", "not postgres and not browser and not system", "-n", "2"), servers=False),
    # What uses no database runs the same a second time; Redis is asked by none of it.
    Part("PostgreSQL and Redis", ("-m", "database and not browser and not system", "-n", "2")),
)
BROWSER = Part("Chromium", ("-m", "browser and not system"))
# Numbers that are too large, and text that is none, fail in ways of its own on each database.
NONSENSE = ("tests/config/test_admin_nonsense.py", "-m", "system", "-n", "2")
SYSTEM = (Part("system", ("-m", "system", "--timeout", "900")), Part("nonsense on SQLite", NONSENSE, servers=False))


@dataclass(frozen=True)
class Result:
    part: Part
    passed: int
    failed: int
    skipped: int
    seconds: float
    exit_code: int

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def line(self) -> str:
        note = "" if self.ok else "   FAILED"
        if self.exit_code == NO_TESTS_COLLECTED:
            note = "   FAILED: no tests were collected"
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.part.name:<22} {self.passed} passed, {self.failed} failed{skipped} in {self.seconds:.0f} s{note}"


def main(arguments: list[str]) -> int:
    parts: tuple[Part, ...]
    match arguments:
        case ["core"]:
            parts, left_out = CORE, os.environ.get("BROWSER") == "0"
            if not left_out:
                require_chromium()
                parts = (*CORE, BROWSER)
        case ["system"]:
            parts, left_out = SYSTEM, False
        case _:
            raise SystemExit(__doc__)
    results = [run(part) for part in parts]
    print("\n" + "\n".join(result.line() for result in results))
    if left_out:
        print("The browser journeys were left out (BROWSER=0).")
    print(f"{sum(r.passed for r in results)} passed, {sum(r.failed for r in results)} failed", flush=True)
    return 0 if all(result.ok for result in results) else 1


def run(part: Part) -> Result:
    print(f"\n=== {part.name} ===", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", *part.options, f"--junitxml={report}"]
        if part.servers:
            command = [sys.executable, str(ROOT / "tests" / "services.py"), *command]
        # Servers of the developer's own environment are not for tests.
        environment = {name: value for name, value in os.environ.items() if name not in SERVERS}
        exit_code = subprocess.call(command, cwd=ROOT, env=environment)
        counts = read(report)
    return Result(part, *counts, seconds=time.monotonic() - started, exit_code=exit_code)


def read(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped of a JUnit report; a run that broke off before writing it failed as a whole."""
    if not report.exists():
        return 0, 1, 0
    total = failed = skipped = 0
    for suite in ElementTree.parse(report).iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return total - failed - skipped, failed, skipped


def chromium() -> str | None:
    """The system's Chromium, or the one that CHROMIUM names."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def require_chromium() -> None:
    """Chromium before the first test: to learn after ten minutes that it is missing helps nobody."""
    if chromium():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("Installing Chromium for the browser journeys.", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
            subprocess.call(["apt-get", *step], env=environment, stdout=subprocess.DEVNULL)
    if not chromium():
        raise SystemExit(
            "The browser journeys need Chromium. Install it (on Debian, as root: apt-get install chromium), name it in"
            " CHROMIUM, or leave them out: make test BROWSER=0"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
