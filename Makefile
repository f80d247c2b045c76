# make figures   every figure at quick scale, and the gallery figures/index.html
# make test      the tests
# make test-fast some tests of every room, for the inner loop: less than a minute once all is compiled
# make test-all  the tests and the slow ones: every verdict that rests on random numbers, on other seeds
# make lint      ruff and mypy
# make lowest    the README's example and some tests with the lowest versions that pyproject.toml allows
# make search    random settings and a climb against every bound (half an hour; SEARCH_ARGS chooses)
# make mutants   faults that tests have to see: a list, and random ones in a room of theory (an hour at most)
# make bench     the benchmarks (installs JAX on first use)
# make docs      the guide, in docs/build/html/index.html; a warning is an error
# make demos     the lecture notebooks of docs/notebooks, in the browser
# make env       only the environment, in .venv
# make clean     remove the environment and all caches, not the figures
#
# PYTHON=python3.12 chooses the interpreter; PYTEST_ARGS, REPRODUCE_ARGS, SEARCH_ARGS and MUTANTS_ARGS are
# passed on.

PYTHON ?= python3
PYTEST_ARGS ?=
REPRODUCE_ARGS ?=
SEARCH_ARGS ?= --settings 5000 --adversarial 10
MUTANTS_ARGS ?= --count 100 --minutes 30

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
MUTANTS_STAMP := $(VENV)/.installed-mutants
LOWEST := .venv-lowest
LOWEST_STAMP := $(LOWEST)/.installed
LOWEST_TESTS := $(addprefix tests/test_,run_and_law.py theory_core.py exact_fa_ld.py network.py)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install -c constraints.txt

# BLAS threads only fight with the engine's own
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help figures test test-fast test-all lint lowest search mutants bench docs demos env clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

env: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; \
	sys.exit(f"fedsim needs Python 3.11 or later, $(PYTHON) is {v}; try make PYTHON=python3.12") \
	if sys.version_info < (3, 11) else print(f"environment: .venv with Python {v}")'
	@test -e $@ || $(PYTHON) -m venv --clear $(VENV)
	@echo "environment: installing the versions of constraints.txt"
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation -e '.[test,figures,cluster,demos,docs]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@echo "environment: installing JAX for the comparison"
	@$(PIP) --no-build-isolation -e '.[test,figures,cluster,demos,docs,bench]'
	@touch $@

$(MUTANTS_STAMP): $(STAMP)
	@echo "environment: installing cosmic-ray for random changes"
	@$(PIP) --no-build-isolation -e '.[test,figures,mutation]'
	@touch $@

figures: $(STAMP)
	$(BIN)/python -m reproduce $(REPRODUCE_ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile --fast $(PYTEST_ARGS)

test-all: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "slow or not slow" $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

$(LOWEST_STAMP): pyproject.toml .ci/lowest.py
	@$(PYTHON) -m venv --clear $(LOWEST)
	@echo "environment: installing the lowest versions of pyproject.toml in $(LOWEST)"
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install \
	$$($(LOWEST)/bin/python .ci/lowest.py)
	@touch $@

lowest: $(LOWEST_STAMP)
	sed '1,/^```python$$/d;/^```$$/,$$d' README.md | $(LOWEST)/bin/python -W error -
	$(LOWEST)/bin/python -m pytest $(LOWEST_TESTS)

search: $(STAMP)
	$(BIN)/python -m tools.search $(SEARCH_ARGS)

mutants: $(MUTANTS_STAMP)
	$(BIN)/python -m tools.mutate
	$(BIN)/python -m tools.mutate.sampled $(MUTANTS_ARGS)

bench: $(BENCH_STAMP)
	$(BIN)/python -m tools.benchmarks
	$(BIN)/python -m tools.benchmarks.indices

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/build/html
	@echo "the guide: docs/build/html/index.html"

demos: $(STAMP)
	$(BIN)/python -m marimo edit docs/notebooks

clean:
	rm -rf $(VENV) $(LOWEST) build docs/build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
