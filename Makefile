# make demo | test | lint | bench | docs | surfaces | expected | clean: needs only Python 3.11 or later and make.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(firstword $(foreach p,python3.13 python3.12 python3.11 python3,$(if $(shell $(p) -c 'import sys; print(int(sys.version_info >= (3, 11)))' 2>/dev/null | grep -x 1),$(p))))
TESTS ?=

.PHONY: help demo test lint bench docs surfaces expected clean

help:
	@echo "make demo    install into $(VENV) and write the memo of examples/flagship"
	@echo "make test    the whole suite: ruff, mypy, import-linter, pytest"
	@echo "make lint    the static checks alone"
	@echo "make bench   the benchmark scripts"
	@echo "make docs    regenerate the reference pages"
	@echo "make surfaces  fit the efficiency surfaces again (needs the public data sets)"
	@echo "make expected  fit the constants of the step model again (needs the public data sets)"
	@echo "make clean   remove $(VENV), caches and built files"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Expected Python 3.11 or later on the path; set PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# Two stamps: people who only run the demo do not wait for the developer tools.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.developer: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.installed

# The evidence of the memo: a ladder asked about a run a little above it, and about the flagship, which it must refuse;
# the review of the first design; the parallel plans of the design that the review asks for; how that design serves, and
# which one should have been chosen for it; a precision gate.
LADDER := $(BIN)/ridgeline --quiet forecast examples/ladder/points.csv --params total
EVIDENCE := examples/flagship/evidence
LAYOUT := $(BIN)/ridgeline --quiet plan --model examples/flagship/model.toml --cluster 1000xH100 \
	--network infiniband_ndr --seq 8k --batch 4096000

SERVE := $(BIN)/ridgeline --quiet serve

demo: $(VENV)/.installed
	$(LADDER) --target 1e12 -o $(EVIDENCE)/10-ladder.json > /dev/null || test $$? -eq 1
	$(LADDER) --target 1.026e24 -o $(EVIDENCE)/20-flagship.json > /dev/null || test $$? -eq 1
	$(BIN)/ridgeline --quiet review examples/flagship --against examples/flagship/comparable.json > /dev/null || test $$? -eq 1
	@cp examples/flagship/review.json $(EVIDENCE)/30-review.json
	$(LAYOUT) -o $(EVIDENCE)/layout > /dev/null
	@cp $(EVIDENCE)/layout/layout.json $(EVIDENCE)/40-layout.json
	$(SERVE) latency examples/flagship --device H100 --count 2 --context 8k --batch 8 -o $(EVIDENCE)/50-latency.json > /dev/null || test $$? -eq 1
	$(SERVE) codesign examples/flagship -o $(EVIDENCE)/60-codesign.json > /dev/null || test $$? -eq 1
	$(BIN)/ridgeline --quiet gate precision --baseline examples/gates/precision/bf16.csv --candidate examples/gates/precision/mxfp8.csv \
		--registration examples/gates/precision/spec.toml -o $(EVIDENCE)/70-precision.json > /dev/null || test $$? -eq 1 -o $$? -eq 4
	$(BIN)/ridgeline memo examples/flagship
	@echo "The memo: $(CURDIR)/examples/flagship/memo.html (also memo.md and memo.json beside it)"

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n auto $(TESTS)

bench: $(VENV)/.installed
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

docs: $(VENV)/.installed
	$(BIN)/python scripts/docs.py

surfaces: $(VENV)/.developer
	$(BIN)/python scripts/fit_surfaces.py
	$(BIN)/python scripts/fit_serving_surfaces.py

expected: $(VENV)/.developer
	$(BIN)/python scripts/fit_expected.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis examples/*/memo.* examples/*/review.html examples/*/review.json examples/*/expectation.json examples/flagship/evidence *-report
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
