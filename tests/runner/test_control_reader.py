"""The control reader keeps what arrives for the running task until it is read."""

import io

import pytest
from pydantic import BaseModel

from jobs.messages.control import Compare, Recorded
from jobs.spec.sections.pruning import Curve
from workers.runner.control_reader import ControlReader


@pytest.fixture
def control() -> ControlReader:
    """A control that is not busy, so that its input's end does not exit the process."""
    return ControlReader()


def feed(control: ControlReader, *lines: BaseModel) -> None:
    """Have it read control lines, as its thread does."""
    control._read(io.BytesIO(b"".join(line.model_dump_json().encode() + b"\n" for line in lines)))


def test_recorded_checkpoints_are_returned_to_every_training_that_asks(control: ControlReader) -> None:
    feed(control, Recorded(folders=("one/a", "two/a")), Recorded(folders=("one/b",)))
    assert control.recorded() == control.recorded() == ["one/a", "two/a", "one/b"]


def test_curves_of_other_trainings_are_returned_once(control: ControlReader) -> None:
    curve = Curve(trial=1, execution=1, epochs=2, over=True, best=((1, 0.5),))
    feed(control, Compare(curves=(curve,)))
    assert control.curves() == [curve]
    assert control.curves() == []


def test_data_for_an_earlier_task_is_discarded(control: ControlReader) -> None:
    feed(control, Recorded(folders=("one/a",)))
    control.reset()
    assert control.recorded() == []
