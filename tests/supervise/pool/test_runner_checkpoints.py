"""Each runner with code writes its checkpoints into its own folder; others are linked to it."""

import os
from pathlib import Path

import pytest

from jobs.messages.control import Recorded
from workers.supervise.pool.runner_checkpoints import (
    NOTE,
    RunnerCheckpoints,
    tidy_after_crash,
    unlink,
)


@pytest.fixture
def checkpoints(tmp_path: Path) -> RunnerCheckpoints:
    (tmp_path / "runners" / "1").mkdir(parents=True)
    return RunnerCheckpoints.create(tmp_path / "store" / "job-7", tmp_path / "runners" / "1", None)


def test_a_runner_has_a_folder_in_that_of_its_job_and_knows_paths_below_it(
    checkpoints: RunnerCheckpoints,
) -> None:
    assert checkpoints.place.parent == checkpoints.root / "job-7"
    assert checkpoints.place.is_dir()
    recorded = Recorded(folders=(f"job-7/{checkpoints.place.name}/trial-1/5", "job-7/own-2/trial-1/6"))
    assert checkpoints.recorded(recorded).folders == ("trial-1/5",)


def test_a_checkpoint_of_another_runner_is_linked_without_anything_that_leads_elsewhere(
    checkpoints: RunnerCheckpoints, tmp_path: Path
) -> None:
    other, inputs = checkpoints.root / "job-7" / "own-2" / "5", tmp_path / "inputs"
    other.mkdir(parents=True)
    inputs.mkdir()
    (other / "model.npz").write_bytes(b"weights")
    (other / "secret").symlink_to("/etc/passwd")
    os.mkfifo(other / "pipe")
    place = Path(checkpoints.link(str(other), inputs))
    assert {file.name: file.read_bytes() for file in place.iterdir()} == {"model.npz": b"weights"}
    assert checkpoints.link(str(other), inputs) == str(place)
    (checkpoints.root / "job-7" / "link").symlink_to(other)
    for missing in (
        checkpoints.root / "job-7" / "link",
        checkpoints.root / "job-7" / "gone",
        checkpoints.root.parent,
    ):
        assert list(Path(checkpoints.link(str(missing), inputs)).iterdir()) == []
    unlink(inputs)
    assert list(inputs.iterdir()) == []


def test_what_was_not_completed_is_removed_also_after_a_crash(
    checkpoints: RunnerCheckpoints, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    for folder in (
        checkpoints.place / "trial-1" / ".tmp-1-5",
        checkpoints.place / "trial-1" / "4-1",
        outside / ".tmp-1-6",
    ):
        folder.mkdir(parents=True)
    (checkpoints.place / "link").symlink_to(outside)
    tidy_after_crash(tmp_path / "runners")
    assert [path.name for path in (checkpoints.place / "trial-1").iterdir()] == ["4-1"]
    assert (outside / ".tmp-1-6").exists()
    unused = RunnerCheckpoints.create(checkpoints.root / "job-7", tmp_path / "runners" / "1", None)
    unused.close()
    assert not unused.place.exists()
    (tmp_path / "runners" / "1" / NOTE).write_text(str(tmp_path / "runners"))
    tidy_after_crash(tmp_path / "runners")
    assert (tmp_path / "runners").is_dir()
