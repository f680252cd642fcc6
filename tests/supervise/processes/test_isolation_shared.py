"""Machines whose runners have other user ids, and which share the folder of the artifact store."""

import json
from pathlib import Path

import pytest

from tests.supervise.processes.conftest import UIDS, make_home
from tests.supervise.processes.test_isolation import needs_capabilities
from workers.confinement.isolation import acl
from workers.confinement.isolation.access import Isolation, RunnerAccess
from workers.confinement.isolation.users import RunnerUsers, UidRange
from workers.confinement.isolation.view import View
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot
from workers.supervise.pool.runner_checkpoints import RunnerCheckpoints

OTHERS = UidRange(61200, 61300)


def access(root: Path, uids: UidRange) -> RunnerAccess:
    folders = make_home(root)
    (folders.runners / "1").mkdir(parents=True)
    return Isolation(RunnerUsers(uids, folders.locks), View()).create_access(folders.runners / "1")


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, RunnerAccess, RunnerAccess]:
    """A checkpoint that a runner of the first machine has written, and the runners of both."""
    first, second = access(tmp_path / "a", UIDS), access(tmp_path / "b", OTHERS)
    job = tmp_path / "shared" / "checkpoints" / "job-7"
    first.grant(job)
    done = checkpoint.write(job / "trial-1", Snapshot({"model": []}, {"epoch": 3}), fence=1, step=3)
    first.revoke(job)
    return done.folder, first, second


def may_read(path: Path, group: int) -> bool:
    return bool(acl.rights(path).get(acl.group(group), 0) & acl.READ)


@needs_capabilities
def test_the_second_machine_reads_and_continues_what_the_first_has_written(
    written: tuple[Path, RunnerAccess, RunnerAccess],
) -> None:
    folder, first, second = written
    assert may_read(folder / "state.json", UIDS.first)
    assert not may_read(folder / "state.json", OTHERS.first)
    second.grant(folder.parents[1])
    new = folder.parent / "new"
    new.mkdir(0o777)
    (new / "file").write_text(json.dumps({}))
    for group in (UIDS.first, OTHERS.first):
        assert all(may_read(path, group) for path in (*folder.iterdir(), new / "file"))
    first.close()
    second.close()


@needs_capabilities
def test_a_runner_with_code_on_the_second_machine_reads_it(
    written: tuple[Path, RunnerAccess, RunnerAccess], tmp_path: Path
) -> None:
    folder, first, second = written
    checkpoints = RunnerCheckpoints.create(folder.parents[1], second.folder, second)
    (inputs := tmp_path / "inputs").mkdir()
    place = Path(checkpoints.link(str(folder), inputs))
    assert {path.name for path in place.iterdir()} == {path.name for path in folder.iterdir()}
    assert all(may_read(path, OTHERS.first) for path in place.iterdir())
    first.close()
    second.close()
