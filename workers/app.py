"""The Celery application of a node's message consumer: `celery -A workers.app worker`.

It reads Django's settings but loads none of its apps, which would take most of the time of a start.
"""

import logging
import os
import warnings
from typing import Any

from celery import signals
from celery.exceptions import SecurityWarning
from django.conf import settings
from django.utils.module_loading import import_string

from jobs.queue import app
from workers import tasks
from workers.node.hints import NODE_PID_VARIABLE
from workers.system.parent_death import die_with_parent

# Only a node sets the variable. A consumer that outlived its node would take messages
# from the queue of the pool and could not deliver them.
if node := os.environ.get(NODE_PID_VARIABLE):
    die_with_parent(int(node))

# It warns root. A consumer only forwards hints; runners have users of their own.
warnings.filterwarnings("ignore", category=SecurityWarning)


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def log_like_other_parts(loglevel: int, **_: Any) -> None:
    """Format lines by the settings; Celery would use its own format.

    They go to standard error, as those of the other parts, so Celery's option `--logfile` has no effect.
    """
    import_string(settings.LOGGING_CONFIG)(settings.LOGGING)
    logging.getLogger().setLevel(loglevel)


__all__ = ["app", "tasks"]
