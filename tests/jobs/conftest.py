import pytest

from tests.jobs.yard import PretendWorker, Yard, make_yard


@pytest.fixture
def yard(db: None) -> Yard:
    return make_yard()


@pytest.fixture
def worker(yard: Yard) -> PretendWorker:
    return PretendWorker(slots=2)
