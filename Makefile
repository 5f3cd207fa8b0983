# make lab     open the course in JupyterLab at lesson 00
# make demo    train on the handwritten digits with 1, 2 and 4 ranks, here in the terminal
# make test    install what the tests need and run everything: code, notebooks, a real browser
# make bench   how fast it is, against PyTorch's own ways of doing the same
# make lessons  run every lesson from top to bottom and store what it gave (after a change to a lesson or the library)
# make clean   remove .venv and everything else that was made
#
# PYTHON names the Python to build .venv with (3.11 or newer): make lab PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: lab demo test bench lessons clean

lab: $(VENV)/installed
	$(BIN)/disttutor lab notebooks

demo: $(VENV)/installed
	$(BIN)/disttutor demo

test: $(VENV)/installed-test
	bash .ci/chromium.sh
	$(BIN)/python -m pytest

bench: $(VENV)/installed
	@set -e; for file in benchmarks/*.py; do printf '\n== %s\n' "$$file"; $(BIN)/python "$$file"; done

lessons: $(VENV)/installed-test
	$(BIN)/python .ci/run_lessons.py

clean:
	rm -rf $(VENV) build dist artifacts disttutor-demo .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here. Install Python 3.11 or newer, or name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), and disttutor needs Python 3.11 or newer. Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing disttutor and what it needs into $(VENV) (some minutes the first time) ..."
	$(PIP) --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing disttutor and what its tests need into $(VENV) (some minutes the first time) ..."
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/installed
