# `make demo` shows the main job, `make test` sets everything up and checks everything.
# On a fresh Debian machine only python3 (>= 3.11) and make are needed beforehand.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest

.DEFAULT_GOAL := help
.PHONY: help demo setup lint format test test-fast test-flink-matrix molecule bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## task executors on this host get disjoint GPUs (simulated where there are none)
	@$(PYTHON) -m tools.demo

setup: $(VENV)/.complete ## install what the tests need: system packages (as root), a virtual environment
	@tools/system-packages.sh

$(VENV)/.complete: pyproject.toml tools/system-packages.sh
	@tools/system-packages.sh
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed, set PYTHON=")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev]'
	mkdir -p $(VENV)/collections/ansible_collections/flinkops
	ln -sfn ../../../.. $(VENV)/collections/ansible_collections/flinkops/gpu
	@touch $@

lint: setup ## ruff, mypy, import boundaries, vermin, yamllint, ansible-lint, shellcheck
	@tools/lint.sh

format: setup ## let ruff format and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup ## everything; what CI runs
	@tools/test.sh

test-fast: setup ## the inner loop: lint and all tests but real Flink, booted hosts, isolation and the slow ones
	@tools/lint.sh
	$(PYTEST) -n auto -m 'not flink and not slow and not booted' --ignore=tests/races --ignore=tests/isolation --ignore=tests/crash_isolation

molecule: setup ## SCENARIO=default plays one of molecule/; without it all are played, two at a time
	@$(if $(SCENARIO),tools/molecule.sh $(SCENARIO),tools/molecule-all.sh)

test-flink-matrix: export FLINK_VERSIONS := 1.18.1 1.19.3 1.20.5 2.0.2 2.3.0
test-flink-matrix: setup ## configuration files in every Flink that is pinned: its loader, its TaskManager (1.3 GB from PyPI, once)
	$(BIN)/python tools/fetch_flink.py $(FLINK_VERSIONS)
	$(PYTEST) tests/flinkconf

bench: setup ## how fast a call is, how that grows, and how it fares beside Flink's own script
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/churn.py

clean: ## remove what `make` made in this folder
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
