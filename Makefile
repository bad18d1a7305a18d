# Every target sets up .venv by itself; nothing needs to be installed by hand.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-all papers browser lint bench docs format clean

demo: $(READY)
	$(BIN)/python -m robustpca.tools.demo --out build/demo

# The same cases every time, without those that are marked slow.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
test test-all: export OPENBLAS_NUM_THREADS = 1
test: $(READY)
	$(PYTEST) -m "not slow"

# All cases, and new random examples for the property tests; ended if they hang.
test-all: $(READY)
	timeout --signal=INT 30m $(PYTEST) --hypothesis-profile=random

# All tables and figures of the papers at their quick level, and a page of them.
papers: $(READY)
	$(BIN)/robustpca bench --quick all --out build/bench

# The report in a real browser, which Debian and Ubuntu have as a package.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
browser: $(READY)
	command -v chromium > /dev/null || { $(SUDO) apt-get update && $(SUDO) apt-get install -y chromium; }
	$(BIN)/python -m pytest tests/bench/test_report_browser.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/outliers.py
	$(BIN)/python benchmarks/reweighted.py
	$(BIN)/python benchmarks/lowrank.py
	$(BIN)/python benchmarks/spectral.py
	$(BIN)/python benchmarks/directions.py
	$(BIN)/python benchmarks/angular.py

docs: $(READY)
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -q -W -E docs build/docs
	@echo "Open build/docs/index.html"

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache

# Dependency groups need pip 25.1; an older pip that came with Python is raised first.
$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[bench,cli,dask,hdf5,plot,report,zarr]" --group dev
	touch $(READY)
