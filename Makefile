# Every target sets up .venv by itself and does nothing twice.
#
#   make tour    see twofold at work: one HTML page, tour.html
#   make lab     watch every method work, in the browser; FILE=wine.csv brings your own
#   make test    tests and doctests
#   make lint    style, types, import contracts and plain words
#   make soak    what takes longer: every attack, every fault of a cluster, whole grids
#   make docs    build the documentation in docs/_build/html
#   make bounds  tests of what is compiled, with every index checked
#   make bench   measure against the other libraries
#
# PYTHON=/path/to/python chooses the interpreter, TESTS=tests/words a part of the tests, JOBS=4 more test processes (0: one, which debuggers like).
# The first run compiles the kernels, which takes some seconds; they are kept beside the source, or in
# NUMBA_CACHE_DIR where that is set.

AT_LEAST := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(AT_LEAST)' 2>/dev/null && echo "$$p" && exit; done; echo python3)
BIN := .venv/bin
TESTS ?= src tests
JOBS ?= 2
TOUR ?= tour.html
BOUNDS ?= $(addprefix tests/,kernels laws completion topics words)

# Larger data sets are used where they lie beside the clone, and otherwise not missed.
ifneq ($(wildcard ../shared/data),)
export TWOFOLD_DATA ?= $(abspath ../shared/data)
endif

unexport PYTHONDONTWRITEBYTECODE  # every process that a test starts would compile every module again

.PHONY: help tour lab test soak lint docs bounds bench clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

tour: .venv/.ready-core
	@$(BIN)/twofold tour -o $(TOUR) --force

lab: .venv/.ready-lab-deep
	@$(BIN)/twofold lab $(FILE)

test: .venv/.ready-dev-dask-deep-lab
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null || \
		echo "no chromium here, so the lab's page is not tested; to have it: apt-get install chromium" >&2
	@$(BIN)/python -m pytest -q -n $(JOBS) --no-loadscope-reorder $(TESTS)

soak: .venv/.ready-dev-dask-deep-lab
	@$(BIN)/python -m pytest -q -n $(JOBS) --no-loadscope-reorder -m soak $(TESTS)
	@$(BIN)/python -m tests.attack sparse indices forks extremes bytes meaning
	@$(BIN)/python -m tests.attack cli kills resume signals disk  # forks of a process without threads

lint: .venv/.ready-dev-dask-deep-lab
	@$(BIN)/ruff check -q --output-format concise
	@$(BIN)/ruff format -q --check
	@$(BIN)/lint-imports --no-logo > .venv/imports.log || { cat .venv/imports.log; exit 1; }
	@$(BIN)/python tools/private_imports.py
	@$(BIN)/python tools/words.py
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest -q -m soak tests/contract/test_types.py > .venv/types.log || { cat .venv/types.log; exit 1; }
	@echo "style, types, import contracts and plain words hold"

docs: .venv/.ready-docs-dask-deep-lab
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bounds: .venv/.ready-dev-dask-deep-lab
	@NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath .venv/bounds) \
		$(BIN)/python -m pytest -q -n $(JOBS) --no-loadscope-reorder $(BOUNDS)

bench: .venv/.ready-bench-dask-deep-lab
	@$(BIN)/python -m bench

clean:
	rm -rf .venv docs/_build docs/gallery/auto docs/reference/generated tour.html

# A stamp a set of extras: .venv/.ready-dev-dask stands for '.[dev,dask]'.
comma := ,

.venv/bin/python:
	@$(PYTHON) -c '$(AT_LEAST)' 2>/dev/null || { echo "twofold needs Python 3.11 or later, and '$(PYTHON)' is" \
		"$$({ $(PYTHON) -V || echo not there; } 2>/dev/null). Name another: make PYTHON=/path/to/python ..." >&2; exit 1; }
	@echo "setting up .venv ..." >&2
	@$(PYTHON) -m venv --clear .venv || { rm -rf .venv; exit 1; }

.venv/.ready-%: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing $(if $(filter core,$*),the core,the extras: $*) ..." >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt \
		-e '.$(if $(filter core,$*),,[$(subst -,$(comma),$*)])'
	@touch $@
