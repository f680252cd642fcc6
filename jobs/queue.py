"""The Celery app: a wire for wake-ups. Work is enqueued by task name, so nobody imports the workers.

A message carries an id. The database decides whether there is something to do, so a lost, doubled or
late message changes nothing.
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
    """Return the queue that only this worker consumes."""
    return f"node.{worker_id}"


def pool_queue(pool: str) -> str:
    """Return the queue that every worker of the pool consumes."""
    return f"pool.{pool}"


def broker_url(redis_url: str) -> str:
    """Return Celery's spelling of a Redis URL (unix sockets differ).

    >>> broker_url("unix:///run/valkey.sock?db=0")
    'redis+socket:///run/valkey.sock?virtual_host=0'
    """
    if redis_url.startswith("unix://"):
        path, _, query = redis_url.removeprefix("unix://").partition("?")
        database = query.removeprefix("db=") or "0"
        return f"redis+socket://{path}?virtual_host={database}"
    return redis_url


def make_app() -> Celery:
    """Build the app: early acknowledgement, no prefetch, JSON only, no results."""
    app = Celery("trainyard", broker=broker_url(settings.TRAINYARD_REDIS_URL))
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_acks_late=False,
        worker_disable_prefetch=True,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "global_keyprefix": "trainyard:",
            "socket_timeout": 5,
            "socket_connect_timeout": 2,
            "retry_on_timeout": True,
            "max_retries": 1,
            "interval_start": 0,  # a wake-up is a hint: its sender does not wait for a broker that is away
            "interval_max": 0.1,
        },
        task_publish_retry=False,
        task_create_missing_queues=True,
    )
    return app


app = make_app()


def _send(task: str, queue: str, *args: int | str) -> None:
    try:
        app.send_task(task, args=args, queue=queue)
    except (OperationalError, OSError) as error:
        log.debug("%s %s not sent, the workers' poll will find it: %s", task, args, error)


def wake(worker_id: int, attempt_id: int) -> None:
    """Tell a worker, after commit, that an attempt of its own is new or wanted otherwise."""
    transaction.on_commit(partial(_send, WAKE, node_queue(worker_id), attempt_id))


def ask_for_suggestions(pool: str, job_id: int) -> None:
    """Ask any worker of the pool, after commit, to suggest trials for a search."""
    transaction.on_commit(partial(_send, SUGGEST, pool_queue(pool), job_id))


def canary(worker_id: int, token: str) -> None:
    """Send a worker's consumer a message whose arrival proves that it consumes."""
    _send(CANARY, node_queue(worker_id), token)
