"""Publishes hints that something has changed. Without a hint, receivers notice at their next poll.

Hints contain ids and positions, no other data, and are sent after commit.
"""

import json
import logging
from functools import cache
from typing import Literal

import redis
from django.conf import settings
from django.db import transaction

log = logging.getLogger(__name__)

Topic = Literal["events", "schedule", "releases", "access"]


def channel_name(topic: Topic) -> str:
    """Return a topic's pub/sub channel."""
    return f"trainyard:{topic}"


# Kept for the life of the process: a new client for each hint would open a new connection each time.
@cache
def _client(url: str) -> "redis.Redis":
    # Senders are requests and the scheduler's loop: neither may wait long for a hint that polling replaces.
    return redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)


def send_now(topic: Topic, **fields: int | str) -> None:
    """Publish a hint immediately; a connection error is logged and ignored."""
    try:
        _client(settings.TRAINYARD_REDIS_URL).publish(channel_name(topic), json.dumps(fields))
    except (redis.RedisError, OSError) as error:
        log.debug("hint %s not sent: %s", topic, error)


def send(topic: Topic, **fields: int | str) -> None:
    """Publish a hint after the current transaction commits, or immediately if there is none."""
    # Inside the transaction, a receiver could read the database before the change is visible.
    transaction.on_commit(lambda: send_now(topic, **fields))
