from tests.experiments.conftest import *  # noqa: F403
