"""The data of the folders beside."""

from tests.engine.compiled.conftest import data  # noqa: F401
from tests.engine.models.test_fine_tuning import blobs_file  # noqa: F401
from tests.engine.models.test_own_code_training import iris  # noqa: F401
from tests.engine.models.test_templates import data_for  # noqa: F401
from tests.engine.models.test_texts import file as texts  # noqa: F401
from tests.engine.models.test_trees import bundled  # noqa: F401
from tests.engine.processes.conftest import set_cost  # noqa: F401
from tests.engine.test_short_flows import yard  # noqa: F401
from tests.engine.training.test_image_training import file as images  # noqa: F401
