"""What `celery -A workers.app` runs: the message consumer, a child process of its node."""

import os

from jobs.queue import app
from workers import tasks
from workers.node.hints import NODE_PID_VARIABLE
from workers.runner.parent_death import tie_to_parent

if node := os.environ.get(NODE_PID_VARIABLE):
    tie_to_parent(int(node))

__all__ = ["app", "tasks"]
