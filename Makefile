# Two commands do everything on a machine with Python 3.11 or newer and pip: `make demo` and `make test`.
# All paths are relative, so the checkout may live under a path with spaces.

SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

EXPERIMENTS := table1 table1-choices table2 table2-choices table3 table3-rebuilt table4 table4-rebuilt table5 table3-choices studies report
.PHONY: demo test lint format figures bench fuzz docs clean $(EXPERIMENTS)

demo: $(VENV)/.installed
	$(RUN) examples/breast_cancer.py

figures: $(VENV)/.installed-test
	$(RUN) examples/breast_cancer.py docs/images/breast_cancer.png
	$(RUN) examples/views.py docs/images/views.png

# About a quarter of an hour; other packages go into environments of their own under .bench.
bench: $(VENV)/.installed-test
	$(RUN) benchmarks/bench.py

# A table of the paper, the studies, or the report on all of them: make table1 OPTIONS='--jobs 2'
$(EXPERIMENTS): $(VENV)/.installed-experiments
	$(RUN) -m experiments $@ $(OPTIONS)

# Five minutes; goes on with other cases the next time. Ends with an error if anything is found.
fuzz: $(VENV)/.installed-test
	$(RUN) -m fuzz all --minutes 5 --out fuzz/records/fuzz.jsonl

# The site is in docs/_build/html/index.html; every warning is an error. Always a clean build, half a minute.
docs: $(VENV)/.installed-docs
	rm -rf docs/_build docs/api
	$(RUN) -m sphinx -W --keep-going -b html -c docs . docs/_build/html

test: lint
	$(RUN) -m pytest -n auto

lint: $(VENV)/.installed-test
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/.installed-test
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

# Each stamp is as new as the last install, so a second call installs nothing.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "bemkl needs Python 3.11 or newer; try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) hatchling editables
	$(PIP) --no-build-isolation --editable .
	touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(PIP) --no-build-isolation --editable '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) .bench docs/_build docs/api dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
