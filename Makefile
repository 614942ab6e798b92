# Needs Python 3.11 or newer and make; everything else is installed into .venv.
#   make demo    train on embedded data, print a table, write a figure
#   make test    run the test suite
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo test test-slow hunt lint bench docs clean
help:
	@sed -n '2,4p' Makefile | cut -c3-
	@echo "  make test-slow, make hunt, make lint, make bench, make docs, make clean"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "toprank needs Python 3.11 or newer, found: $$($(PYTHON) --version 2>&1)." \
	         "Name another one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras; a changed pyproject.toml installs again.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[$*]"
	@touch $@

demo: $(VENV)/.installed-plot
	$(BIN)/python -m toprank.demo

# one thread of BLAS for each of the processes
test: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTEST) -n auto

test-slow: $(VENV)/.installed-test
	$(PYTEST) -m slow

# hostile problems against independent references, some minutes; HUNT="--problems 200 --seed 5" for other options
hunt: $(VENV)/.installed-test
	cd tests && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ../$(BIN)/python -m hunt $(HUNT)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-plot
	$(BIN)/python benchmarks/bench_metrics.py

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
