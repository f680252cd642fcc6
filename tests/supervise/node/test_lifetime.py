"""When a worker ends by itself, and how its options are read."""

from pathlib import Path

import pytest

from jobs.messages.worker_end import seconds_to_end
from tests.supervise.conftest import QUICK
from workers.node.lifetime import Lifetime
from workers.node.settings import read_settings
from workers.supervise.timing import Timing


class Clock:
    """A clock that the test sets."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_worker_ends_after_a_time_without_work_which_each_run_begins_anew() -> None:
    clock = Clock()
    life = Lifetime(600, None, QUICK, clock)
    clock.now += 599
    assert not life.check(busy=False)
    assert not life.check(busy=True)
    clock.now += 599
    assert not life.check(busy=False)
    clock.now += 1
    assert life.check(busy=False)
    assert life.info() == {"idle_exit_seconds": 600, "ending": "It ran nothing for 600 s (--idle-exit)."}


def test_the_time_without_work_begins_when_the_worker_is_registered() -> None:
    clock = Clock()
    life = Lifetime(600, None, QUICK, clock)
    clock.now += 599
    life.begin_idle()
    clock.now += 599
    assert not life.check(busy=False)
    clock.now += 1
    assert life.check(busy=False)


def test_a_worker_has_ended_at_the_end_of_its_life_also_while_it_runs_something() -> None:
    clock, timing = Clock(), Timing(grace=30, upload_grace=20)
    life = Lifetime(None, 14_400, timing, clock)
    clock.now += 14_400 - seconds_to_end(30, 20) - 1
    assert not life.check(busy=True)
    assert life.info() == {"max_life_seconds": 14_400, "seconds_left": 66}
    clock.now += 1
    assert life.check(busy=True)
    assert life.info()["ending"] == "It reaches the end of its life of 14400 s (--max-life)."


def test_a_worker_without_limits_never_ends_by_itself() -> None:
    clock = Clock()
    life = Lifetime(None, None, QUICK, clock)
    clock.now += 1e9
    assert not life.check(busy=False)
    assert life.info() == {}


def test_the_options_of_a_worker_are_read(tmp_path: Path) -> None:
    line = (
        "--name gpu-1 --pool gpu --label gpu=h200 --label site=berlin --idle-exit 10m --max-life 4h --slots 3"
    )
    settings = read_settings(line.split(), tmp_path)
    assert (settings.name, settings.pool, settings.slots) == ("gpu-1", "gpu", 3)
    assert settings.labels == {"gpu": "h200", "site": "berlin"}
    assert (settings.idle_exit, settings.max_life) == (600, 14_400)
    bare = read_settings([], tmp_path)
    assert (bare.name, bare.labels, bare.idle_exit, bare.max_life) == (None, {}, None, None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--idle-exit 10", "argument --idle-exit: '10' is not a duration; give a whole number with s, m, h"),
        ("--idle-exit 0m", "argument --idle-exit: '0m' is not a duration"),
        ("--idle-exit 1.5h", "argument --idle-exit: '1.5h' is not a duration"),
        ("--idle-exit -5m", "--idle-exit"),
        ("--max-life 10M", "argument --max-life: '10M' is not a duration"),
        ("--max-life 9999d", "up to 365d"),
        ("--max-life 30s", "argument --max-life: 30s is too short"),
        ("--label gpu", "argument --label: 'gpu' has no =; write KEY=VALUE"),
        ("--label =x", "argument --label: '' is not the name of a label"),
        ("--label gpu=", "argument --label: '' is not the value of a label"),
        ("--label gpu=a --label gpu=b", "argument --label: the label gpu has two values, a and b"),
        ("--name ../x", "argument --name: '../x' is not a name"),
        ("--pool GPU", "argument --pool: 'GPU' is not the name of a pool"),
        ("--slots 0", "argument --slots: '0' is not a number of slots; give 1 to 1024"),
        ("--slots two", "argument --slots: 'two' is not a number of slots"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused_with_its_name_and_what_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    with pytest.raises(SystemExit) as end:
        read_settings(line.split(), tmp_path)
    assert end.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_duration_of_timing_that_is_no_number_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINYARD_NODE_GRACE", "long")
    with pytest.raises(SystemExit):
        read_settings([], tmp_path)
    assert "TRAINYARD_NODE_GRACE='long': give a number of seconds" in capsys.readouterr().err
