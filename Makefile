# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The one install that takes minutes says what it fetches.
PROGRESS := $(BIN)/python -m pip install --disable-pip-version-check

# Each of the many processes that the tests start would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

CHECKED := datasets events forecast golden measure package probe published report store suite system
FRAMEWORKS := pytorch tensorflow jax mindspore paddle mxnet oneflow

.PHONY: install demo check test test-here test-elsewhere lint frameworks otava ray transformers transformers-check docs bench clean

install: $(VENV)/.demo

demo: $(VENV)/.demo
	@echo "Measuring ResNet-50 on one device and on two: on a CPU about ten minutes, on a GPU about five."
	$(BIN)/trainmark run quick
	@echo
	@echo "Next: . $(BIN)/activate, then"
	@echo "  trainmark report latest --open                       the report in a browser"
	@echo "  trainmark run -- python examples/untouched/train.py  or your own trainer, untouched"

check: lint
	$(BIN)/python -m pytest --numprocesses auto $(CHECKED:%=tests/%)

# Side by side, four jobs at most: types are checked, frameworks and Ray installed and clusters waited for while
# the other tests compute.
test: $(VENV)/.test
	$(MAKE) --no-print-directory --jobs 4 lint test-here test-elsewhere

# Two processes, also on machines of more cores: many tests start ranks of their own. A file stays in one of
# them, because its tests look at one training.
test-here: $(VENV)/.test .venv-docs/.ready
	$(BIN)/python -m pytest --durations 60 --numprocesses 2 --dist loadfile --no-loadscope-reorder \
		--ignore tests/frameworks --ignore tests/cluster

test-elsewhere: $(VENV)/.test frameworks ray
	$(BIN)/python -m pytest --durations 60 tests/frameworks tests/cluster

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
