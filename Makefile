# Needs: make, git, python3.11 or newer with its venv module. Everything else is installed below .venv/.

PORT ?= 8000
RESET ?=
# The first Python that is new enough; PYTHON=/path/to/python chooses another.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links
# Checks and tests read no environment of yours: they bring their own (tests/settings.py).
TEST_SETTINGS := DJANGO_SETTINGS_MODULE=tests.settings

.DEFAULT_GOAL := help
.PHONY: help demo test test-system check lock clean runtime dev installed

help:  ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /	/' | expand -t 14

demo: runtime  ## Serve the console on this machine: PORT=8000, RESET=1 starts over
	@DEMO=1 REDIS_URL= $(BIN)/python manage.py demo --port="$(PORT)" $(if $(filter-out 0,$(RESET)),--reset)

test: dev check  ## Check, then the suite on SQLite, on PostgreSQL with Redis, and in Chromium (BROWSER=0 leaves that out)
	@$(BIN)/python tests/run.py core

test-system: dev  ## The tests that take long
	@$(BIN)/python tests/run.py system

check: dev  ## Style, types, import contracts, migrations, templates, lock files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(TEST_SETTINGS) $(BIN)/python manage.py makemigrations --check --dry-run
	find templates -name '*.html' -print0 | xargs -0 $(BIN)/djade --check --target-version 5.2
	@! grep -nE '://|--(extra-)?index-url|--find-links|--trusted-host' requirements.txt requirements-dev.txt \
		|| { echo 'A lock file names a host; make lock writes it without.'; exit 1; }

lock: dev  ## Write both lock files anew from pyproject.toml (UPGRADE=1 takes newer versions)
	$(LOCK) $(if $(UPGRADE),--upgrade) -o requirements.txt pyproject.toml
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra dev -c requirements.txt -o requirements-dev.txt pyproject.toml

clean:  ## Remove the environment and everything that tools left; the demo's data stays
	rm -rf $(VENV) staticfiles test-artifacts .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What is installed is compared with the lock itself: a second run costs nothing, and time stamps cannot deceive it.
# One at a time: a second make in the same clone waits here, instead of clearing what the first installs.
ALONE := import fcntl, subprocess, sys; lock = open(".data/install.lock", "w"); fcntl.flock(lock, fcntl.LOCK_EX); \
	sys.exit(subprocess.call(sys.argv[1:]))
define install
	@if [ -z "$(PYTHON)" ]; then echo 'Berth needs Python 3.11 or newer (on Debian 12: apt-get install python3 python3-venv).'; exit 1; fi
	@$(PYTHON) -c '$(ALONE)' $(MAKE) --no-print-directory installed INSTALLED=$(1)
endef

installed:
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
			echo 'The venv module of $(PYTHON) is missing (on Debian: apt-get install python3-venv).'; exit 1; fi; \
		$(PYTHON) -m venv --clear $(VENV) || exit 1; \
	fi
	@if ! cmp -s $(INSTALLED) $(VENV)/$(notdir $(INSTALLED)); then \
		echo 'Installing $(INSTALLED); the first time this takes about a minute.'; \
		$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input --require-hashes --no-deps -r $(INSTALLED) \
		&& cp $(INSTALLED) $(VENV)/$(notdir $(INSTALLED)); \
	fi

runtime:
	$(call install,requirements.txt)

dev: runtime
	$(call install,requirements-dev.txt)
