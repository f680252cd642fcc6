from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from pytest_django import Settings

from tests.broker import running_broker
from tests.jobs.yard import Yard, make_yard


@pytest.fixture
def installation(transactional_db: None) -> Yard:
    return make_yard()


@pytest.fixture
def broker(tmp_path: Path, settings: Settings) -> Iterator["redis.Redis"]:
    """Return a client for the broker that distributes hints."""
    with running_broker(tmp_path) as url, redis.Redis.from_url(url) as client:
        settings.TRAINYARD_REDIS_URL = url
        yield client
