"""Runs the code data task: calls the function `load_data` in user code, and writes its rows to a file."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobs.kinds.code_data.payload import CodeDataTask
from jobs.messages.overview import Part
from workers.engine.data import loaded
from workers.engine.data.loaded import PARTS, LoadedFile
from workers.engine.data.returned import Pair, pair_of
from workers.engine.errors import BadData, CodeDataFailure
from workers.engine.models.own_code.entries import function_of
from workers.engine.models.own_code.failures import calling, cause_of, trace_of
from workers.engine.models.own_code.in_use import notes, using_code, working_in_code
from workers.engine.phases import announced_to
from workers.engine.report import Report
from workers.engine.tasks.steps import Steps

MOST_SHOWN = 10
"""Columns whose types are in the log."""


def run(task: CodeDataTask, report: Report) -> dict[str, Any]:
    """Call the function for each part, check its rows, and write them as one file.

    Returns:
        See `CodeDataResult`.

    Raises:
        CodeFailure: the code cannot be imported, or its function fails.
        BadData: it returns something that is no data.
    """
    steps = Steps(report, 3)
    with using_code(task.code, Path(task.folder)), announced_to(report.phase), working_in_code():
        steps.begin("importing the code")
        function = function_of(task.entry)
        for note in notes():
            report.log(note, level="warning")
        steps.begin("calling load_data")
        pairs = _loaded(function, task, report)
        steps.begin("writing the rows")
        file = loaded.write(pairs, Path(task.folder), task.limits, task.prediction)
    for note in file.notes:
        report.warning("part_made", note)
    report.artifact("loaded", file.name, name=file.name)
    steps.done()
    return _result(file)


def _result(file: LoadedFile) -> dict[str, Any]:
    return {"source": file.source, "target": file.target, "part": file.part, "rows": file.rows}


def _loaded(function: Callable[..., Any], task: CodeDataTask, report: Report) -> dict[Part, Pair]:
    name = task.entry.rpartition(":")[2]
    parts: dict[Part, Pair] = {}
    if not takes_split(function):
        what = f"{name}()"
        # Values of the code may execute it again when they are read.
        with _calling(what):
            parts = _parts_of(function(), what, task)
    else:
        for part in PARTS:
            what = f"{name}({part!r})"
            with _calling(what):
                returned = function(part)
                if returned is not None or part == "train":
                    parts[part] = pair_of(returned, what, task.limits)
            report.phase("working")
    for part in PARTS:
        report.log(
            f"{part}: {_description(parts[part])}" if part in parts else f"{part}: nothing was returned"
        )
    return parts


@contextmanager
def _calling(what: str) -> Iterator[None]:
    """Raise the function's errors as errors in its code, also if it has no memory; see `calling`."""
    with calling(CodeDataFailure, what):
        try:
            yield
        except MemoryError as error:
            cause = f"{what} needs more memory than its run has: {cause_of(error)}"
            raise CodeDataFailure(cause, trace_of(error)) from error


def _description(pair: Pair) -> str:
    columns = [*pair.columns.items()]
    listed = ", ".join(f"{name} {_shape(column)}" for name, column in columns[:MOST_SHOWN])
    more = f" and {len(columns) - MOST_SHOWN:,} more" if len(columns) > MOST_SHOWN else ""
    return f"{pair.rows:,} rows of {listed}{more}; y {_shape(pair.y)}"


def _shape(column: Any) -> str:
    kind = getattr(column, "dtype", None) or getattr(column, "type", "")
    return f"{kind}{list(column.shape[1:])}" if getattr(column, "ndim", 1) > 1 else str(kind)


def takes_split(function: Callable[..., Any]) -> bool:
    """Return whether a function is called once for each part; one without arguments returns all parts."""
    try:
        inspect.signature(function).bind("train")
    except TypeError:
        return False
    except ValueError:
        # Without a signature, such as a function of C.
        return True
    return True


def _parts_of(returned: Any, what: str, task: CodeDataTask) -> dict[Part, Pair]:
    """Return the parts in `(x_train, y_train), (x_test, y_test)`, with validation between them."""
    if (
        not isinstance(returned, tuple | list)
        or len(returned) not in (2, 3)
        or not all(map(_is_pair, returned))
    ):
        raise BadData(
            f"{what} must return (x_train, y_train), (x_test, y_test), with (x_validation, y_validation) "
            "between them if there are such rows; or take the name of a part as its argument"
        )
    names: tuple[Part, ...] = PARTS if len(returned) == 3 else ("train", "test")
    return {
        part: pair_of(pair, f"{what}, {part}", task.limits)
        for part, pair in zip(names, returned, strict=True)
    }


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2
