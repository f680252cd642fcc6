import pytest

from tests.jobs.yard import PretendWorker, Yard, make_yard


@pytest.fixture
def installation(db: None) -> Yard:
    return make_yard()


@pytest.fixture
def worker(installation: Yard) -> PretendWorker:
    return PretendWorker(slots=2)
