"""The Celery application of a node's message consumer: `celery -A workers.app worker`."""

import os

from jobs.queue import app
from workers import tasks
from workers.node.hints import NODE_PID_VARIABLE
from workers.runner.parent_death import die_with_parent

# Only a node sets the variable. A consumer that outlived its node would take messages
# from the queue of the pool and could not deliver them.
if node := os.environ.get(NODE_PID_VARIABLE):
    die_with_parent(int(node))

__all__ = ["app", "tasks"]
