# The commands of this project; `make` alone prints them.
.DEFAULT_GOAL := menu
.PHONY: menu setup demo demo-train image engine test check lint types mutants bench clean

HERMIT := .venv/bin/hermit
PYTHON := .venv/bin/python
TESTS ?= tests

menu:
	@echo 'make setup       set up everything: virtual environment, package, bubblewrap, data'
	@echo 'make demo        score a real task set in sandboxes'
	@echo 'make demo-train  train an adapter without a model, and score it before and after'
	@echo 'make image       build the images `hermit` and `hermit-judge` here, no registry needed'
	@echo 'make engine      install and start a Docker engine where none answers'
	@echo 'make test        run the tests (TESTS=path for a part of them)'
	@echo 'make check       lint, types and all tests'
	@echo 'make lint        ruff and shellcheck'
	@echo 'make types       mypy'
	@echo 'make mutants     switch each protection off in turn, and show which test notices'
	@echo 'make bench       what a sandbox costs, in ratios to bare bubblewrap and a bare process'
	@echo 'make clean       remove what setup and the runs made; images stay'

setup:
	@scripts/setup.sh

demo: setup
	@scripts/demo.sh

demo-train: setup
	@scripts/demo-train.sh

image: setup
	@.venv/bin/hermit image build

engine:
	@scripts/engine.sh

test: setup
	@scripts/test.sh $(TESTS)

check: lint types test

lint: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	@! command -v shellcheck >/dev/null || shellcheck -S warning scripts/*.sh images/*.sh images/*/*.sh images/*/steps/*.sh .ci/run

types: setup
	$(PYTHON) -m mypy
	cd hermit/inside && ../../$(PYTHON) -m mypy --config-file= --no-namespace-packages --no-site-packages --strict --cache-dir ../../.mypy_cache/inside *.py

mutants: setup
	$(PYTHON) tests/mutants.py

bench: setup
	$(PYTHON) benchmarks/start.py
	$(PYTHON) benchmarks/humaneval.py
	$(PYTHON) benchmarks/relay.py
	$(PYTHON) benchmarks/copying.py
	@! docker image inspect hermit >/dev/null 2>&1 || $(PYTHON) benchmarks/launch.py

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis images/.cache
	rm -rf examples/*/data examples/*/runs runs
