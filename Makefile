# `make` alone lists the targets. PYTHON picks the interpreter of a new .venv; QUIET= shows all that pip says.
PYTHON ?= python3
QUIET ?= --quiet
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check $(QUIET) -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format types wheel-check clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.installed  ## install once, then answer questions over the demo corpus
	$(BIN)/gfm demo

test: $(VENV)/.installed-dev lint types  ## lint, types and all tests
	$(BIN)/python -m pytest -q -n auto --dist loadfile

check: test  ## the same as `make test`

lint: $(VENV)/.installed-dev  ## ruff: lint and format, changing nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev  ## mypy on gfm/
	$(BIN)/mypy

format: $(VENV)/.installed-dev  ## let ruff mend and format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

wheel-check: $(VENV)/.installed-dev  ## install the wheel into a new environment and run its demo elsewhere
	bash scripts/check_wheel.sh $(BIN)/python

clean:  ## remove the environment, builds and caches
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON) found. Name another one: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else \
	"gfm needs Python 3.11, 3.12 or 3.13; $(PYTHON) is Python %d.%d. Name another one: make PYTHON=python3.11 $(MAKECMDGOALS)" % v)'
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "could not make $(VENV); on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

# The stamps say that the installed set is that of the two files; libraries are installed again only when one changes.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing gfm and its libraries into $(VENV) (the first time takes some minutes; QUIET= shows more)"
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing gfm, its libraries and the tools for tests into $(VENV) (the first time takes some minutes; QUIET= shows more)"
	$(PIP_INSTALL) -e '.[dev,static,bench,llm,serve,mcp,langchain,llama-index]'
	@touch $@ $(VENV)/.installed
