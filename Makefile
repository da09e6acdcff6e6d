# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The one install that takes minutes says what it fetches.
PROGRESS := $(BIN)/python -m pip install --disable-pip-version-check

# Each of the many processes that the tests start would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

FRAMEWORKS := pytorch tensorflow jax mindspore paddle mxnet oneflow

.PHONY: install demo check test test-all quick slow elsewhere observe lint frameworks otava ray transformers transformers-check docs bench clean

install: $(VENV)/.demo

demo: $(VENV)/.demo
	@echo "Measuring ResNet-50 on one device and on two: on a CPU about ten minutes, on a GPU about five."
	$(BIN)/trainmark run quick
	@echo
	@echo "Next: . $(BIN)/activate, then"
	@echo "  trainmark report latest --open                       the report in a browser"
	@echo "  trainmark run -- python examples/untouched/train.py  or your own trainer, untouched"

# What starts no process, of all rooms: three minutes. tests/tiers.py says what belongs to which of these three.
check: lint
	$(BIN)/python -m pytest --tier check --numprocesses auto

# Before a pull request: ten minutes. Types are checked while the tests compute.
test: $(VENV)/.test
	$(MAKE) --no-print-directory --jobs 2 lint quick

# Everything: `make test`, then what is slow; frameworks and Ray are installed and clusters waited for meanwhile.
test-all: $(VENV)/.test
	$(MAKE) --no-print-directory --jobs 4 lint slow elsewhere

# Two processes, also on machines of more cores: many tests start ranks of their own. A file stays in one of
# them, because its tests look at one training.
PYTEST := $(BIN)/python -m pytest --durations 60
TOGETHER := --numprocesses 2 --dist loadfile --no-loadscope-reorder
ELSEWHERE := tests/frameworks tests/cluster

quick: $(VENV)/.test
	$(PYTEST) --tier test $(TOGETHER) $(OBSERVE)

slow: quick .venv-docs/.ready
	$(PYTEST) --tier rest $(TOGETHER) $(ELSEWHERE:%=--ignore %) $(OBSERVE)

elsewhere: $(VENV)/.test frameworks ray
	$(PYTEST) --tier rest $(ELSEWHERE) $(OBSERVE)

# Looks anew at what each test takes, by which the tiers are made; on a machine that does nothing else.
observe:
	$(MAKE) test-all OBSERVE=--observe

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Kept outside the checkout and reused; the tests of one that cannot be had here are skipped with the reason.
frameworks: $(VENV)/.demo
	-$(BIN)/trainmark frameworks install $(FRAMEWORKS)

# For the tests of the launcher for Ray; where it cannot be had they are skipped with the reason.
ray: .venv-ray/.ready

.venv-ray/.ready: requirements/ray.txt
	-$(PYTHON) -m venv .venv-ray && .venv-ray/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/ray.txt && touch $@

# For the change points beside ours; without it only ours are measured.
otava: .venv-otava/.ready

.venv-otava/.ready: requirements/otava.txt
	-$(PYTHON) -m venv .venv-otava && .venv-otava/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/otava.txt && touch $@

# Someone else's models, beside the torch of this environment; without them their tests are skipped.
transformers: .venv-transformers/.ready

transformers-check: $(VENV)/.test transformers
	$(BIN)/python -m pytest --numprocesses 0 tests/transformers_library

.venv-transformers/.ready: $(VENV)/.demo requirements/transformers.txt
	-$(PIP) --no-deps --upgrade --target .venv-transformers -r requirements/transformers.txt && touch $@

# English and Chinese pages as a site; a link that leads nowhere ends the build.
docs: .venv-docs/.ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

.venv-docs/.ready: requirements/docs.txt
	-$(PYTHON) -m venv .venv-docs && .venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt && touch $@

bench: $(VENV)/.test otava
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .venv-docs .venv-otava .venv-ray .venv-transformers dist build site

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Trainmark needs Python 3.10 or later; name one with PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	touch $@

# torch comes by plain pip and by its exact version: a range would bring several gigabytes of CUDA packages.
$(VENV)/.demo: $(VENV)/.python pyproject.toml requirements/core.txt src/trainmark/machine/frameworks/locks/pytorch.txt
	@echo "Installing Trainmark and PyTorch into $(VENV): one to five minutes, 1 GB (6 GB with CUDA)."
	$(PROGRESS) -r requirements/core.txt -r src/trainmark/machine/frameworks/locks/pytorch.txt
	$(PIP) --no-deps --editable .
	touch $@

$(VENV)/.test: $(VENV)/.demo requirements/test.txt
	$(PIP) -r requirements/test.txt
	touch $@
