"""What a runner hears: kept until somebody asks, of the running task alone."""

import io

import pytest

from jobs.contracts.control import Compare, Recorded
from jobs.contracts.pruning import Curve
from workers.runner.control_reader import Inbox


@pytest.fixture
def inbox():
    """An inbox whose supervisor is about to say more, so that its end is none."""
    return Inbox()


def hear(inbox, *said):
    """Let it read control lines, as its thread does."""
    inbox._read(io.BytesIO(b"".join(line.model_dump_json().encode() + b"\n" for line in said)))


def test_recorded_checkpoints_are_told_to_each_training_that_asks(inbox):
    hear(inbox, Recorded(folders=("one/a", "two/a")), Recorded(folders=("one/b",)))
    assert inbox.recorded() == inbox.recorded() == ["one/a", "two/a", "one/b"]


def test_curves_of_others_are_told_once(inbox):
    curve = Curve(trial=1, execution=1, epochs=2, over=True, best=((1, 0.5),))
    hear(inbox, Compare(curves=(curve,)))
    assert inbox.curves() == [curve]
    assert inbox.curves() == []


def test_what_an_earlier_task_was_told_is_forgotten(inbox):
    hear(inbox, Recorded(folders=("one/a",)))
    inbox.begin()
    assert inbox.recorded() == []
