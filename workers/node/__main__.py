"""Command line for the worker node: `python -m workers.node`, with the options of `manage.py worker`."""

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Sequence

import django

from jobs import database_use, known_variables, program
from jobs.logs import absent_installation
from jobs.logs.foreign_output import capture, end_capture, speak_json
from jobs.logs.lines import begin_part
from jobs.logs.start_errors import one_sentence, write_sentence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a node until a signal ends it."""
    speak_json("worker")
    with one_sentence():
        known_variables.settle_or_exit()
        gc.disable()  # until the apps are loaded: the last of them enables it
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
        os.environ[program.KEYLESS_VARIABLE] = "1"
        absent_installation.keep_absent(["worker"])
        begin_part("worker")
        _run(arguments)


def _run(arguments: Sequence[str] | None) -> None:
    django.setup()
    # These modules import models, which need `django.setup()` first.
    from django.conf import settings as django_settings

    from jobs.actions.runs.workers import NameTaken
    from jobs.errors import DatabaseReplaced, ForeignInstallation
    from jobs.monitoring.status import BadStatusAddress
    from jobs.private_files import NotPrivate
    from jobs.queries.compatibility import Incompatible
    from jobs.removed_settings import warn_of_removed
    from workers.node import sandbox_levels
    from workers.node.node import run_node
    from workers.node.node_folder import WorkerNameInUse
    from workers.node.recovery import CannotRecover
    from workers.node.settings import read_settings
    from workers.system.environment import secret_values

    ends = (
        *(WorkerNameInUse, NameTaken, NotPrivate, CannotRecover, BadStatusAddress),
        *(Incompatible, ForeignInstallation, DatabaseReplaced),
    )
    settings = read_settings(arguments, django_settings.TRAINYARD_HOME)
    warn_of_removed()
    if settings.check:
        state, levels = sandbox_levels.check(settings)
        sys.stdout.write(f"{state.message}\n")
        for level in levels:
            offered = "offered" if level.offered else f"not offered: {level.reason}"
            sys.stdout.write(f"Sandbox {level.level} for code of users: {offered}\n")
        sys.exit(state.level == "shared")
    if (sentence := absent_installation.problem("worker")) is not None:
        sys.exit(sentence)
    capture("worker")
    # Runners do not get these values, but the output of a program may still contain one: logs are masked.
    secrets = secret_values(os.environ)
    if django_settings.TRAINYARD_HAS_KEY:
        secrets.add(django_settings.SECRET_KEY)
    status = 1
    try:
        database_use.share(django_settings.DATABASES["default"], django_settings.TRAINYARD_HOME)
        asyncio.run(run_node(settings, secrets=secrets))
        status = 0
    except ends as error:
        write_sentence(str(error))
    except Exception:
        logging.getLogger(__name__).exception("the worker ends with an error")
    logging.shutdown()
    sys.stderr.flush()
    end_capture()
    # A normal exit joins all threads, and one of them may still wait for an unreachable database.
    os._exit(status)


if __name__ == "__main__":
    main()
