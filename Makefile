# Needs Python 3.11 or newer and make; everything else is installed into .venv.
#   make demo    what 200 alerts a day find among card payments: data, table and figure in toprank-demo
#   make test    run the test suite
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
# each worker begins with tests that stand together, so that few loops and fixtures are made twice
WORKERS := -n auto --dist worksteal

LOOPS := tests/pairwise tests/online tests/matrices tests/solvers tests/streams

.PHONY: help demo test test-slow test-bounds test-oldest test-newest hunt lint bench docs clean
help:
	@sed -n '2,4p' Makefile | cut -c3-
	@echo "  make test-slow, make test-bounds, make test-oldest, make test-newest"
	@echo "  make hunt, make lint, make bench, make docs, make clean"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "toprank needs Python 3.11 or newer, found: $$($(PYTHON) --version 2>&1)." \
	         "Name another one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras; a changed pyproject.toml installs again.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[$*]"
	@touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/python -m toprank.demo

# one thread of BLAS for each of the processes, and bytecode kept for the many that tests start
test: $(VENV)/.installed-test
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTEST) $(WORKERS)

test-slow: $(VENV)/.installed-test
	$(PYTEST) -m slow

# hostile problems against independent references, some minutes; HUNT="--problems 200 --seed 5" for other options
hunt: $(VENV)/.installed-test
	cd tests && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ../$(BIN)/python -m hunt $(HUNT)

# compiled with checks of all indices, in a cache of its own: numba does not notice that they are wanted
test-bounds: $(VENV)/.installed-test
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba-bounds OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	  $(PYTEST) $(WORKERS) $(LOOPS)

# the lowest versions that pyproject.toml allows, and the newest that there are; each has an environment of its own.
# Old packages beside new ones may warn of their own age.
test-oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-oldest/bin/uv pip install --quiet --python $(VENV)-oldest/bin/python --upgrade \
	  --resolution lowest-direct --editable ".[test]"
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest $(WORKERS) -W ignore::DeprecationWarning

test-newest:
	$(PYTHON) -m venv $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
	  --upgrade-strategy eager --editable ".[test]"
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)-newest/bin/python -m pytest $(WORKERS)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# ratios to named peers beside the last committed ones, about two minutes; BENCH=--write keeps them
bench: $(VENV)/.installed-plot
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/bench.py $(BENCH)

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:
	rm -rf $(VENV) toprank-demo $(VENV)-oldest $(VENV)-newest .numba-bounds build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
