# Everything a newcomer types. Needs only make and either Python 3.12+ or uv.
#   make demo                    make … PYTHON=python3.13 chooses the interpreter
#   make test ARGS="-k queue"    ARGS go to the command
.POSIX:
.PHONY: help setup setup-dev demo up test chaos lint
ARGS =
PYTHON =
RUN = .venv/bin/python
PYTEST = $(RUN) -m pytest --numprocesses=logical --maxprocesses=4 --no-loadscope-reorder

help:
	@echo 'make setup   install into .venv'
	@echo 'make demo    set up, then the whole flow on real data (ARGS=--exit: driven to the end by a script)'
	@echo 'make up      set up, then run everything; Ctrl-C stops'
	@echo 'make test    set up with the development tools, then the whole suite (ARGS= goes to pytest)'
	@echo 'make chaos   kill processes at random moments: 25 times of each kind, 200 times in searches of every algorithm'
	@echo 'make lint    formatting, lint, types, import rules, deployment checks'

setup:
	@PYTHON="$(PYTHON)" sh scripts/setup requirements.lock

setup-dev:
	@PYTHON="$(PYTHON)" sh scripts/setup requirements-dev.lock

demo: setup
	@exec $(RUN) manage.py demo $(ARGS)

up: setup
	@exec $(RUN) manage.py up $(ARGS)

test: setup-dev
	@exec sh scripts/with-postgres $(PYTEST) $(ARGS)

chaos: setup-dev
	@TRAINYARD_CHAOS=1 TRAINYARD_CHAOS_KILLS=$${TRAINYARD_CHAOS_KILLS:-25} \
	TRAINYARD_CHAOS_SEARCH_KILLS=$${TRAINYARD_CHAOS_SEARCH_KILLS:-200} \
	exec $(RUN) -m pytest tests/chaos tests/runner/test_kill.py $(ARGS)

lint: setup-dev
	@sh scripts/lint
