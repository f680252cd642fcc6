"""Sends wake-up messages to workers by Celery.

Tasks are sent by name, so this module does not import the workers. A message contains an id; the receiver
reads from the database what to do, so a lost, repeated or late message is harmless.
"""

import logging
from functools import partial

from celery import Celery
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

WAKE, SUGGEST, CANARY = "trainyard.wake", "trainyard.suggest", "trainyard.canary"


def node_queue(worker_id: int) -> str:
    """Return the name of one worker's queue."""
    return f"node.{worker_id}"


def pool_queue(pool: str) -> str:
    """Return the name of the queue that all workers in a pool consume."""
    return f"pool.{pool}"


def broker_url(redis_url: str) -> str:
    """Return a Redis URL in Celery's syntax, which differs for Unix sockets.

    >>> broker_url("unix:///run/valkey.sock?db=0")
    'redis+socket:///run/valkey.sock?virtual_host=0'
    """
    if redis_url.startswith("unix://"):
        path, _, query = redis_url.removeprefix("unix://").partition("?")
        database = query.removeprefix("db=") or "0"
        return f"redis+socket://{path}?virtual_host={database}"
    return redis_url


def make_app() -> Celery:
    """Create the Celery app: early acknowledgement, no prefetch, JSON only, no results."""
    # No fixups: that for Django loads the whole project in each message consumer, whose tasks use no model.
    app = Celery("trainyard", broker=broker_url(settings.TRAINYARD_REDIS_URL), fixups=())
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        # The database has every state. A second record of it could only disagree.
        task_ignore_result=True,
        # With late acknowledgement, Redis would deliver a message again while its first receiver works on it.
        # One that is acknowledged early and then lost is harmless, because workers also poll.
        task_acks_late=False,
        worker_disable_prefetch=True,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "global_keyprefix": "trainyard:",
            "socket_timeout": 5,
            "socket_connect_timeout": 2,
            "retry_on_timeout": True,
            # Without a broker, workers poll, so a sender gives up soon.
            "max_retries": 1,
            "interval_start": 0,
            "interval_max": 0.1,
        },
        task_publish_retry=False,
        # Each worker has its own queue, whose name is unknown before the worker registers.
        task_create_missing_queues=True,
    )
    return app


app = make_app()


def _send_message(task: str, queue: str, *args: int | str) -> None:
    try:
        # By name: importing the tasks would import the workers, which this package must not do.
        app.send_task(task, args=args, queue=queue)
    except (OperationalError, OSError) as error:
        log.debug("%s %s not sent, workers will find it by polling: %s", task, args, error)


def wake_worker(worker_id: int, attempt_id: int) -> None:
    """Notify a worker, after commit, of a new attempt or a changed desired state."""
    transaction.on_commit(partial(_send_message, WAKE, node_queue(worker_id), attempt_id))


def ask_for_suggestions(pool: str, job_id: int) -> None:
    """Ask a worker in the pool, after commit, to suggest trials for a search."""
    transaction.on_commit(partial(_send_message, SUGGEST, pool_queue(pool), job_id))


def send_canary(worker_id: int, token: str) -> None:
    """Send a message to a worker's consumer as a health check."""
    _send_message(CANARY, node_queue(worker_id), token)
