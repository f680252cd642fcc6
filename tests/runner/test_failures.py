"""Every exception becomes a stable code and a message."""

import pytest

from workers.engine.errors import BadData, NanLoss
from workers.runner.failures import describe


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadData("column 'a' has no value in row 3"), "bad_data"),
        (NanLoss("the loss became nan"), "nan_loss"),
        (
            RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes."),
            "out_of_memory",
        ),
        (MemoryError("Unable to allocate 9.31 GiB"), "out_of_memory"),
        (FileNotFoundError(2, "No such file", "/gone.npz"), "missing_file"),
        (OSError(28, "No space left on device", "/full/model.keras"), "disk_full"),
        (KeyError("a bug of the engine"), "internal_error"),
    ],
)
def test_an_error_has_a_stable_code(error, code):
    failed = describe(error, now=1.0)
    assert failed.code == code
    assert type(error).__name__ in failed.traceback
