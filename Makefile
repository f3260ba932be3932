# Everything here works on a machine that has Python 3.11 or later, git and make: each target that
# needs the tool or its tests first makes the virtual environment it runs in.
#
# .venv is an editable installation, so `make test` tests the files in front of you. `make bench` has an
# environment of its own with an ordinary installation: an editable one adds import hooks to what is measured.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Python and pytest keep what they compiled: to do it anew for each run takes ten seconds of each worker's time.
unexport PYTHONDONTWRITEBYTECODE

VENV     ?= .venv
BENCH    ?= .venv-bench
DIST     ?= .venv-dist
SITE     ?= .venv-docs
EDITABLE ?= --editable
WORKERS  ?= auto
N        ?= 2000
PYTHON   ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST = $(BIN)/pytest --dist loadgroup
# What the tests of a file share, and what they import, is made once; of the slow ones a file may have hours.
TESTS  = $(PYTEST) --dist loadfile -m 'not slow and not client'
# Of a file that is named in ARGS, the long tests run as well.
SHORT  = $(if $(findstring tests/,$(ARGS)),,-m 'not long and not slow and not client')
CODE   = ua_memory tests docs $(wildcard benchmarks examples)

# uv takes a tenth of the time that pip takes; where there is none, pip installs it first, and where that
# cannot be had, pip does it all.
define make_venv
	@test -n "$(PYTHON)" || { echo "ua-memory needs Python 3.11 or later on the PATH, or: make PYTHON=/path/to/python3" >&2; exit 1; }
	@if command -v uv >/dev/null && uv venv -q --allow-existing --python "$(PYTHON)" "$(1)" 2>/dev/null \
		&& uv pip install -q --python "$(1)/bin/python" $(2); then exit 0; fi; \
	"$(PYTHON)" -m venv "$(1)" || { echo "python could not make a virtual environment; on Debian: apt install python3-venv" >&2; exit 1; }; \
	"$(1)/bin/python" -m pip install -qq --disable-pip-version-check uv 2>/dev/null \
		&& "$(1)/bin/uv" pip install -q --python "$(1)/bin/python" $(2) \
		|| { echo "without uv, which could not be used here; pip takes some two minutes" >&2; \
		"$(1)/bin/python" -m pip install -qq --disable-pip-version-check $(2); }
endef

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(STAMP): pyproject.toml
	@echo "installing into $(VENV) (once)"
	$(call make_venv,$(VENV),$(EDITABLE) '.[dev]')
	@touch "$@"

$(BENCH)/.installed: pyproject.toml $(shell find ua_memory -type f -not -name '*.pyc')
	@echo "installing into $(BENCH)"
	$(call make_venv,$(BENCH),'.[dev]')
	@touch "$@"

demo: $(STAMP)  ## a bank in a temporary folder: notes, facts, a search, an undo
	@PATH="$(abspath $(BIN)):$$PATH" bash examples/demo.sh

test: $(STAMP)  ## the tests, without those marked long, slow or client
	@$(TESTS) $(SHORT) -n $(WORKERS) --timeout 300 --in-memory $(ARGS)

test-long: $(STAMP)  ## those marked long: daemons, kills, several machines, many commands
	@$(TESTS) -m 'long and not slow and not client' -n $(WORKERS) --timeout 300 --in-memory $(ARGS)

test-all: $(STAMP)  ## all of them, and twelve times the examples of each property
	@$(PYTEST) -n $(WORKERS) --timeout 1800 --hypothesis-profile all $(ARGS)

# Root keeps all its users there; anybody else is themselves again, since some tests ask what only root may do.
ALONE = if unshare -n true 2>/dev/null; then exec unshare -n sh -c "ip link set lo up && exec \"\$$@\"" sh "$$@"; \
	else exec unshare -rn sh -c "ip link set lo up && exec unshare --map-user=$$(id -u) --map-group=$$(id -g) \"\$$@\"" sh "$$@"; fi
offline: $(STAMP)  ## the same tests where there is no network but loopback (Linux)
	@sh -c '$(ALONE)' sh $(TESTS) -n $(WORKERS) --timeout 900 $(ARGS)

check: $(STAMP)  ## ruff, its formatter, and mypy --strict
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy

format: $(STAMP)  ## let ruff mend and lay out the code
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

golden: $(STAMP)  ## rewrite the golden files from what the code does; read the diff
	@$(TESTS) -n 0 --update-golden $(ARGS)
	@git --no-pager diff --stat -- tests

fuzz: $(STAMP)  ## every property with N=2000 fresh random examples
	@FUZZ_EXAMPLES=$(N) $(PYTEST) -n $(WORKERS) -m hypothesis --hypothesis-profile fuzz $(ARGS)

crash: $(STAMP)  ## kill it at every step of a write, and see what is left
	@$(PYTEST) -q -n $(WORKERS) --timeout 1800 tests/crash $(ARGS)

stress: N = 64
stress: FACTS ?= 50
stress: $(STAMP)  ## N=64 processes with FACTS=50 each at one file, with an editor, git, daemon and rebuild
	@STRESS_PROCESSES=$(N) STRESS_FACTS=$(FACTS) $(PYTEST) -q -n 0 --timeout 7200 tests/stress $(ARGS)

bench: $(BENCH)/.installed  ## the figures of docs/benchmarks.md, measured on this machine
	@$(BENCH)/bin/python benchmarks/run.py $(ARGS)

years: N = 1000000
years: $(BENCH)/.installed  ## ten years of logs with N=1000000 facts, measured; takes hours and 10 GB of TMPDIR
	@nice -n 19 $(BENCH)/bin/python benchmarks/years.py $(ARGS) $(N)

peers: $(BENCH)/.installed  ## the table of docs/compare.md: other tools in build/peers, asked the same; ARGS=--help
	@$(BENCH)/bin/python benchmarks/peers/run.py $(ARGS)

$(DIST)/.installed:
	@echo "installing into $(DIST) (once)"
	$(call make_venv,$(DIST),build twine uv pipx)
	@touch "$@"

dist: $(STAMP) $(DIST)/.installed  ## sdist and wheel in dist/, checked, installed by uv, pipx and pip, the demo run from each
	@PATH="$(abspath $(DIST)/bin):$$PATH" .ci/dist "$(abspath $(BIN))/python"

$(SITE)/.installed: pyproject.toml
	@echo "installing into $(SITE)"
	$(call make_venv,$(SITE),$(shell sed -n 's/^docs = \[\(.*\)\].*/\1/p' pyproject.toml))
	@touch "$@"

docs: $(SITE)/.installed  ## the documentation as a site, in site/; open site/index.html
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict $(ARGS)

clean:  ## remove what the targets above have made
	rm -rf .venv .venv-bench .venv-dist .venv-docs build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find ua_memory tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help demo test test-all offline check format golden fuzz crash stress bench years peers dist docs clean
