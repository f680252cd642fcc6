import pytest

from tests.jobs.yard import Yard, make_yard


@pytest.fixture
def yard(transactional_db: None) -> Yard:
    return make_yard()
