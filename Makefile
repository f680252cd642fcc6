# The commands to install, run and test Trainyard. They need only make and either Python 3.12+ or uv.
#   make demo PYTHON=python3.13  PYTHON selects the interpreter
#   make setup-gpu CUDA=12       CUDA, 12 or 13, selects the release; by default the driver and the GPUs do
#   make test ARGS="-k queue"    ARGS are passed to the command
.POSIX:
.PHONY: help setup setup-dev setup-gpu demo up test test-all test-gpu chaos lint advisories release
ARGS =
PYTHON =
RUN = .venv/bin/python
PYTEST = $(RUN) -m pytest --numprocesses=auto --no-loadscope-reorder

help:
	@echo 'make setup   install into .venv'
	@echo 'make setup-gpu   the same with the packages for NVIDIA GPUs; all other goals keep them (CUDA=12 or CUDA=13 chooses)'
	@echo 'make demo    install, then run the whole flow on real data (ARGS=--exit: a script runs all steps)'
	@echo 'make up      install, then run everything; Ctrl-C stops'
	@echo 'make test    install with the development tools, then run the tests of the first tier, in minutes'
	@echo 'make test-all   run all tests (ARGS= is passed to pytest)'
	@echo 'make test-gpu   install with the packages for GPUs, then run the tests that need one'
	@echo 'make chaos   kill processes at random moments: each kind 25 times, and 200 times in searches of every algorithm; read 10 000 damaged uploads; long outages of several machines'
	@echo 'make lint    check formatting, lint, types, import rules and deployment settings'
	@echo 'make advisories   check the locked packages against known security advisories; needs a network'
	@echo 'make release   build and sign the release of this commit in dist/ (TRAINYARD_SIGNING_KEY: file of the key)'

setup:
	@PYTHON="$(PYTHON)" sh scripts/setup requirements.lock

setup-dev:
	@PYTHON="$(PYTHON)" sh scripts/setup requirements-dev.lock

setup-gpu:
	@PYTHON="$(PYTHON)" CUDA="$(CUDA)" sh scripts/setup gpu

demo: setup
	@exec $(RUN) manage.py demo $(ARGS)

up: setup
	@exec $(RUN) manage.py up $(ARGS)

# Hundreds of processes start; without byte code each would compile our modules again.
test: setup-dev
	@PYTHONDONTWRITEBYTECODE= exec $(PYTEST) --first-tier $(ARGS)

test-all: setup-dev
	@PYTHONDONTWRITEBYTECODE= exec sh scripts/with-postgres $(PYTEST) $(ARGS)

test-gpu:
	@PYTHON="$(PYTHON)" CUDA="$(CUDA)" sh scripts/setup requirements-dev.lock gpu
	@exec $(RUN) -m pytest -m gpu tests/gpu $(ARGS)

chaos: setup-dev
	@TRAINYARD_CHAOS=1 TRAINYARD_CHAOS_KILLS=$${TRAINYARD_CHAOS_KILLS:-25} \
	TRAINYARD_CHAOS_SEARCH_KILLS=$${TRAINYARD_CHAOS_SEARCH_KILLS:-200} \
	TRAINYARD_CHAOS_MUTANTS=$${TRAINYARD_CHAOS_MUTANTS:-10000} \
	exec $(RUN) -m pytest tests/chaos tests/runner/processes/test_kill.py tests/deploy $(ARGS)

lint: setup-dev
	@sh scripts/lint

# PATH holds pip-audit of the development tools. Error 1: an advisory was found. Error 3: something was not checked.
advisories: setup-dev
	@PATH="$$PWD/.venv/bin:$$PATH" exec $(RUN) scripts/advisories.py

release: setup-dev
	@exec $(RUN) scripts/release.py
