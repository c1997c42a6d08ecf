# Everything runs in an environment of its own; python3, pip and make are all that is needed.
PYTHON ?= python3
VENV   ?= .venv
# Where an environment has its programs.
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(PROGRAMS)
DEMO   := build/demo
AXE    := build/axe
FROZEN ?= build/frozen
comma  := ,
PYTEST := -m pytest -q -n auto --dist worksteal
# Compiled modules are kept whatever the caller says: tests start dozens of processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
STUDIES := coverage coverage-clusters verdicts regression-verdicts subgroup-verdicts heavy-tails symmetry-and-power conformal-sets many-tables cem-replication
.PHONY: help demo test test-core test-all frozen test-engines test-integrations test-lowest test-package dist check-tag lint bench $(STUDIES) properties docs docs-site notebooks screenshots clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

define install
	@test -x $(1)/$(PROGRAMS)/python || $(PYTHON) -m venv $(1)
	@$(1)/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check $(2)
	@$(1)/$(PROGRAMS)/python -m compileall -q src
	@touch $(1)/$(3)
endef

$(VENV)/.base: pyproject.toml constraints.txt
	$(call install,$(VENV),-c constraints.txt -e ".[tune]",.base)

$(VENV)/.test: pyproject.toml constraints.txt
	$(call install,$(VENV),-c constraints.txt -e '.[test]',.test)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt netcal xgboost

$(VENV)-bench/.bench: pyproject.toml constraints.txt
	$(call install,$(VENV)-bench,-c constraints.txt -e '.[bench]',.bench)
	@$(VENV)-bench/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt dlordinal

$(VENV)-engines/.engines: pyproject.toml constraints.txt
	$(call install,$(VENV)-engines,-c constraints.txt -e '.[engines]',.engines)

$(VENV)-integrations/.integrations: pyproject.toml constraints-integrations.txt
	$(call install,$(VENV)-integrations,-c constraints-integrations.txt -e '.[integrations-test]',.integrations)

$(VENV)-lowest/.test: pyproject.toml constraints-lowest.txt
	$(call install,$(VENV)-lowest,-c constraints-lowest.txt -e '.[test]',.test)

# A stop of the tour: what is asked, the command, its report.
define tour
	@printf '\n%s\n\n$$ ordinate %s\n\n' $(1) "$(2)"
	@cd $(DEMO) && $(abspath $(BIN))/ordinate $(2)
endef

demo: $(VENV)/.base ## a tour: evaluate, compare, tune and predict on the shipped examples
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@cp "$$($(BIN)/python -m ordinate.examples cefr)" $(DEMO)/levels.csv
	@cp "$$($(BIN)/python -m ordinate.examples systems)" $(DEMO)/systems.csv
	@cp "$$($(BIN)/python -m ordinate.examples densities)" $(DEMO)/densities.csv
	$(call tour,"1. How good is a classifier of language levels?",evaluate levels.csv --gold gold --predicted predicted)
	$(call tour,"The same as a page to open in a browser:",evaluate levels.csv --gold gold --predicted predicted -o report.html)
	$(call tour,"2. Which of four systems is best$(comma) and is that significant?",compare systems.csv --systems tfidf$(comma)forest$(comma)transformer$(comma)ensemble --metrics cem_ord)
	$(call tour,"3. A model from labelled texts: lay out an experiment (your own: --train essays.csv).",init study)
	$(call tour,"4. Tune it for a metric.",tune -e study --metric cem_ord --preset minimal --jobs 2)
	$(call tour,"5. Predict with the winner.",predict -e study)
	$(call tour,"6. Which of the saved models is best on the test texts?",rank -e study --metric cem_ord)
	$(call tour,"7. A regression model$(comma) in the unit of its target.",tune-regression densities.csv --target density --unit kg/m³ --preset minimal -e found)
	@printf '\nThe page of the first report: $(DEMO)/report.html\nAll files are in $(DEMO). Next: docs/first-steps.md$(comma) docs/report.md$(comma) docs/tuning.md.\n'

lint: $(VENV)/.test ## style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin
	$(BIN)/lint-imports

# What tests of pages look for barriers with, where there is npm.
$(AXE)/node_modules:
	@if command -v npm >/dev/null; then \
	  npm install --silent --no-save --no-package-lock --prefix $(AXE) axe-core@4.14.0; \
	else echo "There is no npm: pages are not searched for barriers."; fi

test: lint $(AXE)/node_modules ## lint, types, import rules and all quick tests
	$(BIN)/python $(PYTEST)

test-core: lint $(AXE)/node_modules ## the same without the tests of what trains and searches models
	$(BIN)/python $(PYTEST) --ignore=tests/tuning

test-all: lint $(AXE)/node_modules ## the same with slow tests, all examples of laws and branch coverage
	HYPOTHESIS_PROFILE=all $(BIN)/python $(PYTEST) --cov --cov-report=term:skip-covered \
		-m 'slow or not slow'

frozen: $(VENV)/.test ## keep every report of the tests in FROZEN, to compare two states of the code
	FROZEN=$(abspath $(FROZEN)) $(BIN)/python $(PYTEST) tests

test-engines: $(VENV)-engines/.engines ## the engines that need Java or a server, and all others
	$(VENV)-engines/$(PROGRAMS)/python -m pytest -q -m 'slow or not slow' tests/engines

test-integrations: $(VENV)-integrations/.integrations ## MLflow, CatBoost, Lightning, JAX and the Trainer, in an environment of their own
	$(VENV)-integrations/$(PROGRAMS)/python -m pytest -q tests/integrations/own_environment

test-lowest: $(VENV)-lowest/.test ## the tests against the oldest supported versions
	$(VENV)-lowest/$(PROGRAMS)/python $(PYTEST)

test-package: $(VENV)/.test ## build the wheel, and install it with each extra in an empty environment
	$(BIN)/python -m pytest -q -m 'slow or not slow' tests/package

dist: $(VENV)/.test ## build the source distribution and the wheel
	rm -rf dist && $(BIN)/python -m build --no-isolation

check-tag: $(VENV)/.test ## check that TAG is the version of the package: make check-tag TAG=v0.1.0
	$(BIN)/python -c "import ordinate, sys; sys.exit(None if sys.argv[1] == 'v' + ordinate.__version__ else sys.argv[1] + ' is not v' + ordinate.__version__)" "$(TAG)"

bench: $(VENV)-bench/.bench ## measure against the peers, and write the pages of benchmarks
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/labels.py --write docs/studies/labels-benchmark.md
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/inference.py --write docs/studies/inference-benchmark.md
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/probabilities.py --write docs/studies/probabilities-benchmark.md
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/decoding.py --write docs/studies/decoding-benchmark.md
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/metric_tuned.py --write docs/studies/metric-tuned-classifiers.md
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/regression.py --write docs/studies/regression-benchmark.md
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/scale.py --write docs/studies/scale-benchmark.md
	$(VENV)-bench/$(PROGRAMS)/python benchmarks/many.py --write docs/studies/many-benchmark.md

coverage: $(VENV)/.test ## study the coverage of confidence intervals
	$(BIN)/python benchmarks/interval_coverage.py --write docs/studies/interval-coverage.md --warnings src/ordinate/inference/coverage_warnings.csv

coverage-clusters: $(VENV)/.test ## study the coverage of intervals where items come in clusters
	$(BIN)/python benchmarks/cluster_coverage.py --write docs/studies/cluster-coverage.md --warnings src/ordinate/inference/cluster_coverage_warnings.csv

verdicts: $(VENV)/.test ## study false verdicts and the power of comparisons
	$(BIN)/python benchmarks/verdicts.py --write docs/studies/verdicts.md

regression-verdicts: $(VENV)/.test ## study false verdicts on regression models
	$(BIN)/python benchmarks/regression_verdicts.py --page docs/studies/regression-verdicts.md

subgroup-verdicts: $(VENV)/.test ## study false verdicts on subgroups
	$(BIN)/python benchmarks/subgroup_verdicts.py --write docs/studies/subgroup-verdicts.md

heavy-tails: $(VENV)/.test ## study regression intervals under heavy tails
	$(BIN)/python benchmarks/heavy_tails.py --write docs/studies/heavy-tails.md

symmetry-and-power: $(VENV)/.test ## study Bowker's test and the items that pilots ask for
	$(BIN)/python benchmarks/symmetry_and_power.py --write docs/studies/symmetry-and-power.md

conformal-sets: $(VENV)/.test ## study the size and coverage of conformal prediction sets
	$(BIN)/python benchmarks/conformal_sets.py --write docs/studies/conformal-sets.md

many-tables: $(VENV)/.test ## study intervals of macro F1 where tables are too many to resample
	$(BIN)/python benchmarks/many_tables.py --write docs/studies/many-tables.md

cem-replication: $(VENV)/.test ## run the CEM paper's experiment on metrics again
	$(BIN)/python benchmarks/cem_replication.py --search --write docs/studies/cem-replication.md

properties: $(VENV)/.test ## search the formal properties of all metrics, and keep what is found
	$(BIN)/ordinate properties --search --format json --force -o src/ordinate/metrics/known_properties.json

docs: $(VENV)/.test ## regenerate pages of metrics and all shown output, and build the site in build/docs
	$(BIN)/python docs/build.py
	$(MAKE) docs-site

docs-site: $(VENV)/.test ## build the site of the documentation in build/docs, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

notebooks: $(VENV)/.test ## write the tutorials as Jupyter notebooks into build/notebooks
	$(BIN)/python docs/notebooks.py build/notebooks

screenshots: $(VENV)/.test ## take the pictures of pages anew, in Chromium
	$(BIN)/python docs/screenshots.py

clean: ## remove environments and caches
	rm -rf dist $(VENV) $(VENV)-bench $(VENV)-engines $(VENV)-integrations $(VENV)-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis build
