from tests.experiments.conftest import spec  # noqa: F401  a fixture
from tests.world import world  # noqa: F401  a fixture
