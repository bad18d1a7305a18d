# Every target sets up .venv by itself; nothing needs to be installed by hand.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
READY_DEMO := .venv/.ready-demo

.PHONY: demo picture test test-all test-lowest test-interop fuzz papers reproduction browser lint types bench docs dist smoke format clean

demo: $(READY_DEMO)
	$(BIN)/python -m robustpca.tools.demo --out build/demo --force

# The picture of README.
picture: $(READY_DEMO)
	$(BIN)/python -m robustpca.tools.demo --out build/demo --force
	mkdir -p docs/images
	cp build/demo/demo.png docs/images/demo.png

# The same cases every time, without those that are marked slow.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
test test-all: export OPENBLAS_NUM_THREADS = 1
# The processes that tests start would each compile the library again where this is set.
test test-all: export PYTHONDONTWRITEBYTECODE =
test: $(READY)
	$(PYTEST) -m "not slow"

# All cases, and new random examples for the property tests; ended if they hang.
test-all: $(READY)
	timeout --signal=INT 30m $(PYTEST) --hypothesis-profile=random

# A part of the tests that reaches all dependencies, on their lowest supported versions.
LOWEST := build/lowest
test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(LOWEST)/bin/python scripts/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --editable ".[all]" --group dev \
	    --constraint $(LOWEST)/constraints.txt
	OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n 2 --dist worksteal -m "not slow" \
	    tests/engine tests/parts tests/solvers tests/tools tests/cli tests/models/test_common.py

# The examples of docs/guide/other_libraries.md, with the newest versions of those libraries.
INTEROP := build/interop
test-interop:
	$(PYTHON) -m venv --clear $(INTEROP)
	$(INTEROP)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(INTEROP)/bin/python -m pip install --quiet --editable . pytest hypothesis --group interop
	$(INTEROP)/bin/python -m pytest -W default tests/test_other_libraries.py

# Random data, parameters and damaged files: right answers, or one clear error. Hours, unless told.
CASES ?= 100000
MINUTES ?= 240
fuzz: export OPENBLAS_NUM_THREADS = 1
fuzz: $(READY)
	$(BIN)/python scripts/fuzz.py --cases $(CASES) --minutes $(MINUTES)

# All tables and figures of the papers at their quick level, and a page of them.
papers: $(READY)
	$(BIN)/robustpca bench --quick all --out build/bench

# The page of kept results, build/papers/report.html, and the generated half of docs/reproduction.md.
reproduction: $(READY)
	$(BIN)/python scripts/results.py pages

# The report in a real browser, which Debian and Ubuntu have as a package.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
browser: $(READY)
	command -v chromium > /dev/null || { $(SUDO) apt-get update && $(SUDO) apt-get install -y chromium; }
	$(BIN)/python -m pytest tests/bench/test_report_browser.py tests/tools/test_job_page_browser.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

# Code of users as pyright sees it; mypy reads it with `make lint`.
types: $(READY)
	$(BIN)/python -m pip install --quiet "pyright[nodejs]"
	$(BIN)/pyright

bench: $(READY)
	$(BIN)/python benchmarks/defaults.py
	$(BIN)/python benchmarks/outliers.py
	$(BIN)/python benchmarks/reweighted.py
	$(BIN)/python benchmarks/lowrank.py
	$(BIN)/python benchmarks/spectral.py
	$(BIN)/python benchmarks/directions.py
	$(BIN)/python benchmarks/angular.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/command_line.py

# The site, from pages and examples that are run: a minute or two. Nothing is fetched but packages.
docs: export OPENBLAS_NUM_THREADS = 1
docs: $(READY)
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -q -W -E docs build/docs
	@echo "Open build/docs/index.html"

dist: $(READY)
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist

# The built packages, installed into an environment of their own and used from an empty folder.
smoke: dist
	$(BIN)/python scripts/smoke_test.py build/dist

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache

# The demo needs the core and matplotlib only; what the tests need can be added before or later.
$(READY_DEMO): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $(READY_DEMO)

# Dependency groups need pip 25.1; an older pip that came with Python is raised first.
$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $(READY)
