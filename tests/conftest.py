import pytest

from tests.people import People, make_people


@pytest.fixture
def people(db: None) -> People:
    """The project "yard", its owner, member, trainer, approver and viewer, a stranger, an administrator."""
    return make_people()
