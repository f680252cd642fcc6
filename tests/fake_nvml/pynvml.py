"""The module `pynvml` of a worker in tests: answers for the box in the file that FAKE_NVML_BOX names."""

import sys

from tests.gpu_box import FakeNvml

# Its functions are methods of one object, as they are in tests that run in this process.
sys.modules[__name__] = FakeNvml()  # type: ignore[assignment]
