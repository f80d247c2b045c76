# make figures   every figure at quick scale, and the gallery figures/index.html
# make test      the tests
# make test-fast some tests of every room, for the inner loop: less than a minute once all is compiled
# make test-all  the tests and the slow ones: every verdict that rests on random numbers, on other seeds
# make lint      ruff and mypy
# make lowest    the README's example and some tests with the lowest versions that pyproject.toml allows
# make newest    the same, and all imports, with the newest Python that is found on this machine
# make search    random settings and a climb against every bound (half an hour; SEARCH_ARGS chooses)
# make mutants   faults that tests have to see: a list, and random ones in a room of theory (an hour at most)
# make recipes   docs/recipes: kernels of other packages under exact laws, RECIPES="blackjax optax"; where torch
#                is installed for the processor alone, python docs/recipes/of_posteriors.py (else some gigabytes)
# make bench     the benchmarks (installs JAX on first use)
# make docs      the guide, in docs/build/html/index.html; a warning is an error
# make demos     the lecture notebooks of docs/notebooks, in the browser
# make env       only the environment, in .venv; make figures alone needs a part of it
# make clean     remove the environments and all caches, not the figures
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
FIGURES_STAMP := $(VENV)/.installed-figures
BENCH_STAMP := $(VENV)/.installed-bench
MUTANTS_STAMP := $(VENV)/.installed-mutants
LOWEST := .venv-lowest
LOWEST_STAMP := $(LOWEST)/.installed
NEWEST := .venv-newest
NEWEST_STAMP := $(NEWEST)/.installed
RECIPES ?= blackjax optax
OTHERS := .venv-recipes
OTHERS_STAMP := $(OTHERS)/.installed-$(subst $() ,-,$(strip $(RECIPES)))
WITH_WHEELS = $(NEWEST)/bin/python $(INSTALL) --only-binary :all: --no-build-isolation -e '.[test,figures]'
NEWEST_PYTHON ?= $(shell $(PYTHON) .ci/newest.py)
SOME_TESTS := $(addprefix tests/test_,run_and_law.py theory_core.py exact_fa_ld.py network.py)
EXAMPLE := sed '1,/^```python$$/d;/^```$$/,$$d' README.md
INSTALL := -m pip --disable-pip-version-check --quiet install
PIP := $(BIN)/python $(INSTALL) -c constraints.txt

# BLAS threads only fight with the engine's own
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help figures test test-fast test-all lint lowest newest try-newest recipes try-recipes \
	search mutants bench docs demos env clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

env: $(STAMP)

$(FIGURES_STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; \
	sys.exit(f"fedsim needs Python 3.11 or later, $(PYTHON) is {v}; try make PYTHON=python3.12") \
	if sys.version_info < (3, 11) else print(f"environment: .venv with Python {v}")'
	@test -e $@ || test -e $(STAMP) || $(PYTHON) -m venv --clear $(VENV)
	@echo "environment: installing the versions of constraints.txt, for figures"
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation -e '.[figures]'
	@touch $@

$(STAMP): $(FIGURES_STAMP)
	@echo "environment: installing the rest of constraints.txt"
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

figures: $(FIGURES_STAMP)
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
	@$(LOWEST)/bin/python $(INSTALL) $$($(LOWEST)/bin/python .ci/lowest.py)
	@touch $@

lowest: $(LOWEST_STAMP)
	$(EXAMPLE) | $(LOWEST)/bin/python -W error -
	$(LOWEST)/bin/python -m pytest $(SOME_TESTS)

$(NEWEST_STAMP): pyproject.toml constraints.txt .ci/newest.py
	@$(NEWEST_PYTHON) -m venv --clear $(NEWEST)
	@echo "environment: installing the versions of constraints.txt in $(NEWEST)"
	@$(NEWEST)/bin/python $(INSTALL) -c constraints.txt hatchling
	@$(WITH_WHEELS) -c constraints.txt || { echo "not all of them have wheels for this Python: installing what has"; \
	$(WITH_WHEELS); }
	@touch $@

try-newest: $(NEWEST_STAMP)
	$(EXAMPLE) | $(NEWEST)/bin/python -W error -
	$(NEWEST)/bin/python -W error .ci/imports.py
	$(NEWEST)/bin/python -m pytest $(SOME_TESTS)

newest:
	@if test -n "$(NEWEST_PYTHON)"; then $(MAKE) --no-print-directory try-newest; fi

# NumPy, SciPy and the packages, without numba; `posteriors` is not among them in CI, as the torch that an index
# gives on Linux brings CUDA: several gigabytes for ten seconds of tests
$(OTHERS_STAMP): docs/recipes/constraints.txt
	@$(PYTHON) -m venv $(OTHERS)
	@echo "environment: installing $(RECIPES) in $(OTHERS)"
	@$(OTHERS)/bin/python $(INSTALL) -c docs/recipes/constraints.txt scipy $(RECIPES)
	@touch $@

recipes: $(OTHERS_STAMP)
	@for name in $(RECIPES); do echo "== $$name"; PYTHONPATH=. $(OTHERS)/bin/python docs/recipes/of_$$name.py || exit 1; done

try-recipes:
	@if $(MAKE) --no-print-directory $(OTHERS_STAMP); then $(MAKE) --no-print-directory recipes; \
	else echo "$(RECIPES) cannot be installed on this machine: recipes are not run"; fi

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
	rm -rf $(VENV) $(LOWEST) $(NEWEST) $(OTHERS) build docs/build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
