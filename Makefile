# `make run` and `make test` set everything up on a machine that has only python3 (3.11 or newer, with venv) and make.
PYTHON ?= python3
VENV := .venv
PORT ?= 8000
SEEDS ?= 500
START ?= 1
MINUTES ?= 20
BIN := $(VENV)/bin
QUICK := -n 2 --dist worksteal -m "not slow"
SLOW := -n 2 --dist worksteal -m slow
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq

.DEFAULT_GOAL := help
.PHONY: help install run test slow test-twice retest lint format docs bench bench-peers screenshots quality lock clean storm soak mutants cuts simulate

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.runtime: requirements/runtime.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tidings needs Python 3.11 or newer, and $(PYTHON) is older or missing. If you have one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (once) ..."
	@$(PIP) --require-hashes --only-binary :all: -r requirements/runtime.txt
	@echo "$(CURDIR)/src" > "$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')/tidings-source.pth"
	@printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -m tidings "$$@"\n' > $(BIN)/tidings
	@chmod +x $(BIN)/tidings
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	@echo "Setting up the tools for tests (once) ..."
	@$(PIP) --require-hashes --only-binary :all: --no-binary rouge-score -r requirements/dev.txt
	@touch $@

$(VENV)/.peers: requirements/peers.txt $(VENV)/.dev
	@$(PIP) --require-hashes -r requirements/peers.txt
	@touch $@

install: $(VENV)/.runtime ## set everything up in .venv

run: install ## start the sample world: http://127.0.0.1:8000
	@$(BIN)/python -m tidings demo --port $(PORT)

test: $(VENV)/.dev ## run the test suite, on real SQLite and real PostgreSQL (6 minutes on two idle cores)
	@$(BIN)/python -m pytest $(QUICK)

slow: $(VENV)/.dev ## the slow proofs in small numbers: races, kill storms, restarts, a week of faults, an old pip
	@$(BIN)/python -m pytest $(SLOW)

test-twice: $(VENV)/.dev ## both, as CI runs them: what fails is tried again alone, and what failed once is named
	@$(BIN)/python tests/failed_once.py '$(QUICK)' '$(SLOW)'

retest: $(VENV)/.dev ## run again only what failed, one test at a time
	@$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

simulate: $(VENV)/.dev ## faults drawn from seeds, invariants after every commit: SEEDS=500 START=1
	@$(BIN)/python -m simulation --seeds $(SEEDS) --start $(START)

storm: $(VENV)/.dev ## the slow proofs at their full size, 4,000 kills among them (KILLS=300: only the kills, so many)
	@TIDINGS_STORM=$(or $(KILLS),full) $(BIN)/python -m pytest -m "slow or storm" -o faulthandler_timeout=3600 $(if $(KILLS),tests/acceptance/test_storm.py)

soak: $(VENV)/.dev ## every role under load for MINUTES (20): fails where memory or the log keeps growing
	@PYTHONPATH=src $(BIN)/python -m bench.soak --minutes $(MINUTES)

mutants: $(VENV)/.dev ## undo rules one by one, each must be noticed (SAMPLE=10, ONLY=name or rule, SEED=text)
	@$(BIN)/python -m mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

cuts: $(VENV)/.dev ## cut networks, kill and fill PostgreSQL under real processes; print what each cost (CUTS=few)
	@TIDINGS_CUTS=$(or $(CUTS),full) $(BIN)/python -m pytest tests/cuts

lint: $(VENV)/.dev ## style, types, layers, code that nothing uses
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@PYTHONPATH=src $(BIN)/lint-imports
	@$(BIN)/vulture

format: $(VENV)/.dev ## put the code in shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(VENV)/.dev ## write the reference pages anew from the code
	@$(BIN)/python docs/generate.py

bench: $(VENV)/.dev ## print one table of everything measured
	@$(BIN)/python -m bench

bench-peers: $(VENV)/.peers ## the same table with other job queues on the same work
	@$(BIN)/python -m bench --peers

screenshots: $(VENV)/.dev ## take the pictures of docs/images anew
	@SCREENSHOTS=docs/images $(BIN)/python -m pytest tests/browser/test_screenshots.py

quality: $(VENV)/.dev ## score extraction, sentiment and summaries beside the baselines
	@$(BIN)/python -m quality

lock: $(VENV)/.dev ## pin the newest versions that fit pyproject.toml
	@for set in "runtime:" "dev:--extra dev --extra notifiers --extra mirrors --extra replicate --extra mcp" "peers:--extra dev --extra notifiers --extra mirrors --extra replicate --extra mcp --extra peers"; do \
	  $(BIN)/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
	    --python-version 3.11 $${set#*:} -o requirements/$${set%%:*}.txt pyproject.toml; done
	@$(BIN)/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
	  --python-version 3.11 -o requirements/s3.txt requirements/s3.in

clean: ## remove what was made
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
