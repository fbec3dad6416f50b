# Everything from a bare Python 3.11 and make; each target sets up what it needs in .venv.
# make PYTHON=python3.13 picks another interpreter.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
LAYER ?= build/layer

.DEFAULT_GOAL := help
.PHONY: help setup demo up test live machines lint bench e2e layer lock clean

help:
	@echo "make setup  what the others need first, in .venv"
	@echo "make demo   a year of real flights backfilled twice, with tasks killed on the way"
	@echo "make up     the local stack, until Ctrl-C"
	@echo "make test   lint, then all tests but the end-to-end ones"
	@echo "make machines EXAMPLES=n   n random small machines against the local Step Functions"
	@echo "make live   300,000 rows found, repaired and undone while 400 writes a second go on"
	@echo "make lint   ruff, mypy, import directions"
	@echo "make bench  the benchmarks"
	@echo "make e2e    the end-to-end tests"
	@echo "make layer  build/layer for AWS: what the functions need"
	@echo "make lock   write requirements/*.lock from pyproject.toml"
	@echo "make clean  remove .venv and everything built"

setup: $(READY)

demo: $(READY)
	$(BIN)/trueup demo

up: $(READY)
	$(BIN)/trueup up

test: lint .venv-ministack/.ready
	$(if $(EXAMPLES),TRUEUP_MACHINES=$(EXAMPLES)) $(BIN)/python -m pytest --ignore=tests/e2e

# Random small machines, as many as EXAMPLES says: make machines EXAMPLES=10000
machines: $(READY)
	TRUEUP_MACHINES=$(or $(EXAMPLES),10000) $(BIN)/python -m pytest -n 0 tests/unit/stepfunctions/test_random_machines.py

# About four minutes; the same with 20,000 rows is part of `make test`.
live: $(READY)
	TRUEUP_LIVE_ROWS=$(or $(ROWS),300000) TRUEUP_LIVE_WRONG=$(or $(WRONG),2000) \
	  $(BIN)/python -m pytest -n 0 -s tests/stores/test_repair_live.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(READY) .venv-prefect/.ready .venv-reladiff/.ready
	$(BIN)/python -m bench

e2e: $(READY)
	@if [ -d tests/e2e ]; then $(BIN)/python -m pytest tests/e2e; \
	else echo "There are no end-to-end tests yet: tests/e2e is absent."; fi

# For the functions' runtime, whatever this machine is; template.yaml names the same version and architecture.
# The containers' lock: functions and containers run the same versions.
layer: $(READY)
	rm -rf $(LAYER)
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary=:all: --target $(LAYER)/python \
	  --implementation cp --python-version 3.12 --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
	  --platform manylinux2014_x86_64 -r requirements/worker.lock
	$(BIN)/python -m trueup.local.packaging $(LAYER)

lock: $(READY)
	bash requirements/lock.sh $(LOCK_ARGS)

clean:
	rm -rf .venv .venv-ministack .venv-prefect .venv-reladiff build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info

# The stamp goes first and comes last: an interrupted set-up starts afresh, a complete one is brought up to date.
# No build isolation: the lock holds the build backend, and nothing is fetched without a hash.
$(READY): pyproject.toml requirements/dev.lock requirements/data.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "trueup needs Python 3.11 or newer; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)."; \
	    echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(if $(wildcard $@),,--clear) .venv
	@rm -f $@
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --no-build-isolation -r requirements/data.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# The engine that nobody here wrote, on which the tests of the machines have to pass too.
.venv-ministack/.ready: requirements/ministack.lock
	$(PYTHON) -m venv --clear .venv-ministack
	.venv-ministack/bin/python -m pip install --quiet --require-hashes -r requirements/ministack.lock
	@touch $@

# What the benchmarks compare with, apart from everything else.
.venv-prefect/.ready: requirements/prefect.lock
	$(PYTHON) -m venv --clear .venv-prefect
	.venv-prefect/bin/python -m pip install --quiet --require-hashes -r requirements/prefect.lock
	@touch $@

.venv-reladiff/.ready: requirements/reladiff.lock
	$(PYTHON) -m venv --clear .venv-reladiff
	.venv-reladiff/bin/python -m pip install --quiet --require-hashes -r requirements/reladiff.lock
	@touch $@
