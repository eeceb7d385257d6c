# Two commands do everything on a fresh machine with Python 3.11 or newer and make: `make report` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXPERIMENT ?= default
CORES ?= 1
RETEST ?=
SMK_FLAGS ?=

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: report test test-real check fmt clean help

report: $(VENV)/.installed ## draw the report of EXPERIMENT (default), measuring what is missing
	snakemake --cores $(CORES) report --config experiment=$(EXPERIMENT) $(if $(RETEST),retest=$(RETEST)) $(SMK_FLAGS)
	@echo "reports/$(EXPERIMENT)/index.html"

test: $(VENV)/.installed-dev ## unit tests, log cases, and the whole workflow on the simulated engine
	$(BIN)/python -m pytest -n $$(nproc)

test-real: $(VENV)/.installed-dev ## tests with real engines and other real components
	$(BIN)/python -m pytest tests/real -rs

check: $(VENV)/.installed-dev ## style, types, formats and the workflow's own linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

fmt: $(VENV)/.installed-dev ## bring everything into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

clean: ## delete what was installed and derived; results/ and reports/ stay
	rm -rf $(VENV) .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: envs/crossover.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r envs/crossover.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/.installed-dev: envs/dev.txt $(VENV)/.installed | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r envs/dev.txt
	@touch $@
