# Everything runs in an environment of its own; python3, pip and make are all that is needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   := build/demo
PYTEST := -m pytest -q -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest lint bench coverage properties docs clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

define install
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2)
	@$(1)/bin/python -m compileall -q src
	@touch $(1)/$(3)
endef

$(VENV)/.base: pyproject.toml constraints.txt
	$(call install,$(VENV),-c constraints.txt -e ".[tune]",.base)

$(VENV)/.test: pyproject.toml constraints.txt
	$(call install,$(VENV),-c constraints.txt -e '.[test]',.test)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt netcal xgboost

$(VENV)-bench/.bench: pyproject.toml constraints.txt
	$(call install,$(VENV)-bench,-c constraints.txt -e '.[bench]',.bench)
	@$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt dlordinal

$(VENV)-lowest/.test: pyproject.toml constraints-lowest.txt
	$(call install,$(VENV)-lowest,-c constraints-lowest.txt -e '.[test]',.test)

demo: $(VENV)/.base ## evaluate, compare, tune and predict on the shipped examples
	$(BIN)/ordinate evaluate "$$($(BIN)/python -m ordinate.examples cefr)" --gold gold --predicted predicted
	@echo
	$(BIN)/ordinate compare "$$($(BIN)/python -m ordinate.examples systems)" --gold gold \
		--systems tfidf,forest,transformer,ensemble --metrics cem_ord
	@echo
	@rm -rf $(DEMO)
	$(BIN)/ordinate init $(DEMO)
	@echo
	$(BIN)/ordinate tune -e $(DEMO) --metric cem_ord --stage2-trials 4 --jobs 2
	@echo
	$(BIN)/ordinate predict -e $(DEMO)
	@echo
	$(BIN)/ordinate evaluate -e $(DEMO)
	@echo
	$(BIN)/ordinate rank -e $(DEMO) --by cem_ord
	@echo
	$(BIN)/ordinate surrogate tune "$$($(BIN)/python -m ordinate.examples densities)" --target density \
		--unit kg/m³ --preset minimal -o $(DEMO)/densities

lint: $(VENV)/.test ## style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## lint, types, import rules and all quick tests
	$(BIN)/python $(PYTEST)

test-all: lint ## the same with slow tests, all examples of laws and branch coverage
	HYPOTHESIS_PROFILE=all $(BIN)/python $(PYTEST) --cov --cov-report=term:skip-covered \
		-m 'slow or not slow'

test-lowest: $(VENV)-lowest/.test ## the tests against the oldest supported versions
	$(VENV)-lowest/bin/python $(PYTEST)

bench: $(VENV)-bench/.bench ## measure against the peers, and write the pages of benchmarks
	$(VENV)-bench/bin/python benchmarks/labels.py --write docs/studies/labels-benchmark.md
	$(VENV)-bench/bin/python benchmarks/inference.py --write docs/studies/inference-benchmark.md
	$(VENV)-bench/bin/python benchmarks/probabilities.py --write docs/studies/probabilities-benchmark.md
	$(VENV)-bench/bin/python benchmarks/decoding.py --write docs/studies/decoding-benchmark.md
	$(VENV)-bench/bin/python benchmarks/regression.py --write docs/studies/regression-benchmark.md

coverage: $(VENV)/.test ## study the coverage of confidence intervals, and write its page
	$(BIN)/python benchmarks/interval_coverage.py --write docs/studies/interval-coverage.md --warnings src/ordinate/inference/coverage_warnings.csv

properties: $(VENV)/.test ## search the formal properties of all metrics, and keep what is found
	$(BIN)/ordinate properties --search --format json --force -o src/ordinate/metrics/known_properties.json

docs: $(VENV)/.test ## regenerate the reference and all shown output
	$(BIN)/python docs/build.py

clean: ## remove environments and caches
	rm -rf $(VENV) $(VENV)-bench $(VENV)-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis build
