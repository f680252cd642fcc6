"""Every exception becomes a stable code and a message."""

from typing import Any

import pytest

from workers.engine.errors import BadData, NanLoss
from workers.runner.failures import describe


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NanLoss("the loss became nan"), "nan_loss"),
        (
            RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes."),
            "out_of_memory",
        ),
        (MemoryError("Unable to allocate 9.31 GiB"), "out_of_memory"),
        (OSError(12, "Cannot allocate memory"), "out_of_memory"),
        (FileNotFoundError(2, "No such file", "/gone.npz"), "missing_file"),
        (OSError(28, "No space left on device", "/full/model.keras"), "disk_full"),
        (OSError(27, "File too large", "/run/dataset.npz"), "file_limit"),
        (KeyError("a bug of the engine"), "internal_error"),
    ],
)
def test_an_error_has_a_stable_code(error: Any, code: str) -> None:
    failed = describe(error, now=1.0)
    assert failed.code == code
    assert type(error).__name__ in failed.traceback


def test_a_refused_input_has_a_message_without_a_traceback() -> None:
    failed = describe(BadData("column 'a' has no value in row 3"), now=1.0)
    assert (failed.code, failed.message, failed.traceback) == (
        "bad_data",
        "column 'a' has no value in row 3",
        "",
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            FileNotFoundError(2, "No such file", "/home/of/worker/gone.npz"),
            "gone.npz cannot be read: No such file",
        ),
        (FileNotFoundError(2, "No such file"), "a file of the task cannot be read: No such file"),
        (OSError(28, "No space", "/full/model.keras"), "no space left on the worker's disk for model.keras"),
    ],
)
def test_a_message_has_no_folder_of_the_worker(error: Any, message: str) -> None:
    assert describe(error, now=1.0).message == message
