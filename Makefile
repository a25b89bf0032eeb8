# Each target does its own set-up. The first one needs a network to fill .venv; after that everything works offline.

SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin
export TIDEGAUGE_SHARED ?= $(abspath ../shared)

# Tests of the screen and the command line, which run no kernel: make test runs them beside the engine's.
SCREEN_TESTS := $(wildcard tests/cli tests/dashboard tests/docs tests/exporter tests/pty tests/screens tests/themes)
# Rooms whose tests run kernels; they run a second time with bounds checks.
KERNEL_TESTS := $(wildcard tests/native tests/measure tests/storage tests/wal tests/fsimage tests/workloads)
# A separate kernel cache: numba's own does not notice NUMBA_BOUNDSCHECK.
BOUNDS := NUMBA_BOUNDSCHECK=1 TIDEGAUGE_KERNELS=$(abspath .kernels-bounds)

.PHONY: help demo test coverage compile compile-bounds test-screen test-engine test-rest test-bounds test-pythons test-cluster lint format bench fuzz docs clean venv

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

venv:
	@.ci/venv $(VENV) dev

demo: venv ## the dashboard on a running log; without a terminal, ten seconds of measurement and a table
	@if [ -t 0 ] && [ -t 1 ]; then $(RUN)/tidegauge; \
	else $(RUN)/tidegauge run wal --threads 1,5,50 --duration 2s --warmup 1s; fi

test: venv ## unit tests, with coverage of the engine, and the kernels once more with bounds checks
	@rm -rf .kernels-bounds
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target compile compile-bounds
	@$(RUN)/python -m coverage erase
	@echo "two halves run side by side; each part is shown when it has ended"
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going test-engine test-rest; status=$$?; \
	$(RUN)/python -m coverage combine --quiet && $(RUN)/python -m coverage report; exit $$status

compile: venv
	@$(RUN)/python .ci/compile-kernels

compile-bounds: venv
	@$(BOUNDS) $(RUN)/python .ci/compile-kernels

# Without coverage, which would make drawing take two thirds longer; `make coverage` looks at everything.
test-screen: venv
	$(RUN)/python -m pytest $(SCREEN_TESTS)

test-engine: venv
	$(RUN)/python -m coverage run --source=engine -m pytest $(addprefix --ignore=,$(SCREEN_TESTS))

coverage: venv ## what the tests reach of everything
	@$(RUN)/python -m coverage erase
	$(RUN)/python -m coverage run -m pytest; status=$$?; \
	$(RUN)/python -m coverage combine --quiet && $(RUN)/python -m coverage report; exit $$status

# The half that keeps the other processor busy as long as test-engine does.
test-rest:
	@$(MAKE) --no-print-directory test-screen; status=$$?; \
	$(MAKE) --no-print-directory test-bounds || status=1; exit $$status

test-bounds: compile-bounds
	$(BOUNDS) $(RUN)/python -m pytest -m "not slow" $(KERNEL_TESTS); \
	status=$$?; rm -rf .kernels-bounds; exit $$status

test-pythons: venv ## the unit tests on every other Python here that starts
	@.ci/test-pythons $(VENV)

test-cluster: ## against real HDFS and HBase servers, where they can be installed
	@if compgen -G "tests/cluster/test_*.py" >/dev/null; then \
	.ci/venv $(VENV) dev && $(RUN)/python -m pytest tests/cluster; \
	else echo "test-cluster: there are no tests against real servers yet"; fi

lint: venv ## format, style, types, who imports whom, spelling, documentation; says all that is wrong, not the first
	@status=0; \
	for check in "ruff format --check ." "ruff check ." mypy lint-imports codespell "python -m pytest -q tests/docs"; do \
	echo "$(RUN)/$$check"; $(RUN)/$$check || status=1; done; exit $$status

format: venv ## let ruff put the format right
	$(RUN)/ruff check --fix-only --quiet . ; $(RUN)/ruff format .

bench: ## side by side with peers on this disk; takes minutes; BENCH="wal_peers wal_bare" for some
	@.ci/venv $(VENV) dev,bench
	$(RUN)/python -m tests.bench $(BENCH)

fuzz: venv ## the property tests, with many more examples than make test gives them
	$(RUN)/python -m pytest --hypothesis-profile=fuzz --timeout=1800 -m "not slow" tests

docs: venv ## write the generated pages of docs/reference
	$(RUN)/python docs/generate.py

clean: ## remove everything that can be made again
	rm -rf .venv .venv-3.* .kernels .kernels-bounds .coverage .coverage.* .hypothesis .mypy_cache .ruff_cache \
	.pytest_cache .import_linter_cache build dist *.egg-info
	find engine dashboard themes tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
