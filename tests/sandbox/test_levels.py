"""The sandbox levels that a machine offers: their views and limits."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.messages.sandbox import Level
from tests.sandbox.conftest import python
from tests.sandbox.test_launch import LIMITS, start
from workers.confinement.sandbox import (
    bubblewrap,
    cgroups,
    landlock,
    launch,
    levels,
    usage,
    view,
)
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.watch import Watch


@pytest.fixture
def folder(owner: Owner | None) -> Iterator[Path]:
    """A run's folder, which its user can enter."""
    with tempfile.TemporaryDirectory(prefix="trainyard-sandbox-") as name:
        if owner is not None:
            os.chown(name, *owner)
        yield Path(name)


def test_nothing_acts_on_the_ids_of_a_run_after_its_end(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(folder, owner, "true") as process:
        assert process.wait(60) == 0
        monkeypatch.setattr(usage, "children", lambda _: pytest.fail("its id may be that of another"))
        monkeypatch.setattr(
            "workers.confinement.sandbox.process.end_processes", lambda _: pytest.fail("so may its user's")
        )
        process.kill()
    process.kill()


def test_a_run_is_ended_if_the_kernel_lists_no_children(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some kernels have no such file: the test reads a name that does not exist.
    monkeypatch.setattr(usage, "_CHILDREN", "missing")
    with start(folder, owner, "sleep", "60") as process:
        watch = Watch(process, [str(folder)], interval=0.01).start()
        assert watch.wait(60) < 0
        assert watch.ended is not None
        assert "its processes could not be counted" in watch.ended.message


def test_a_process_is_hidden_if_only_the_names_of_its_open_files_can_be_read(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> str:
        raise PermissionError

    with start(folder, owner, "sleep", "60") as process:
        assert not usage.is_hidden([process.pid])
        monkeypatch.setattr(os, "readlink", refuse)
        assert usage.is_hidden([process.pid])


DOMAIN = """
import os
from workers.confinement.sandbox import landlock
from workers.system import kernel
rules = landlock.create_domain({version})
kernel.forbid_new_privileges()
landlock.restrict(rules)
for name in ("a", "b"):
    os.mkdir(name)
os.rename("a", "b/a")
open("b/file", "w").close()
os.rename("b/file", "b/a/file")
try:
    open(f"/proc/{{os.getppid()}}/mem", "r+b")
except PermissionError:
    print("refused")
"""


@pytest.mark.parametrize("version", [2, 6])
def test_a_domain_of_landlock_refuses_the_memory_of_others_alone(version: int, tmp_path: Path) -> None:
    if landlock.version() < version:
        pytest.skip("the kernel has no such version")
    command = [sys.executable, "-c", DOMAIN.format(version=version)]
    variables = {"PYTHONPATH": str(view.CODE_ROOT)}
    printed = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert (printed.stdout, printed.stderr) == ("refused\n", "")
    assert landlock.create_domain(1) is None


def test_threads_are_limited_by_the_kernel_only_where_it_counts_them_for_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for release, counts in (("5.13.0-1", False), ("5.14.0", True), ("6.1-rc2", True), ("4.19.0", False)):
        monkeypatch.setattr(os, "uname", lambda version=release: SimpleNamespace(release=version))
        assert launch._counts_in_namespace() is counts


def test_a_level_that_does_not_hold_is_not_offered(
    folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = launch._filter
    monkeypatch.setattr(launch, "_filter", lambda *arguments: {**real(*arguments), "internet": True})
    state = levels._find(Level.LANDLOCK, owner, python(), None)
    assert (state.offered, state.reason) == (False, "a program could connect to a port of this machine")


def test_a_level_whose_program_does_not_end_says_what_to_do(
    owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "TIMEOUT", 0.001)
    state = levels._find(Level.PROCESS, owner, python(), None)
    assert not state.offered
    assert state.reason.endswith("to end; start the worker again")


def test_levels_that_the_machine_lacks_have_a_reason(
    owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "find_bubblewrap", lambda: None)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    claim = None if owner is None else lambda: owner
    states = {state.level: state for state in levels.find_levels(claim, python())}
    assert states[Level.BUBBLEWRAP].reason.startswith("bubblewrap is not installed; install the package")
    assert states[Level.LANDLOCK].reason == "the kernel has no Landlock"
    assert states[Level.PROCESS].offered


def test_the_view_has_neither_the_rest_of_the_machine_nor_the_home_of_the_installation(
    folder: Path,
) -> None:
    targets = {mount.target for mount in view.mounts((), (str(folder),), "/var/tmp")}
    assert {"/", "/etc", "/home", "/root", "/run", "/var", str(view.CODE_ROOT)}.isdisjoint(targets)
    assert str(view.CODE_ROOT / "workers") in targets
    assert {"/etc/ssl", "/etc/ssl/private", "/etc/pki", "/etc/pki/tls"}.isdisjoint(targets)
    assert {"/etc/ssl", "/etc/pki", "/etc/pki/tls"}.isdisjoint(view.SYSTEM)
    line = bubblewrap.command_line(
        "bwrap", view.mounts((), (str(folder),), "/var/tmp"), ["true"], network=False, privileged=False,
        shared_memory=1,
    )  # fmt: skip
    assert {"--unshare-net", "--unshare-user", "--unshare-pid", "--die-with-parent"} < set(line)


def test_nothing_is_mounted_below_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the virtual environment's folder is a link."""
    packages = tmp_path / "real" / "lib" / "packages"
    packages.mkdir(parents=True)
    link = tmp_path / "venv"
    link.symlink_to(tmp_path / "real")
    below = str(link / "lib" / "packages")
    monkeypatch.setattr(view, "python_folders", lambda: (link, Path(below)))
    kinds = {mount.target: mount.kind for mount in view.mounts((), (), "/var/tmp")}
    assert (kinds[str(link)], kinds[str(packages)]) == ("link", "read")
    assert below not in kinds


def test_control_groups_are_used_only_where_one_is_delegated(tmp_path: Path) -> None:
    with pytest.raises(cgroups.NoCgroup, match="TRAINYARD_SANDBOX_CGROUP is not set"):
        cgroups.delegated({})
    environment = {cgroups.VARIABLE: str(tmp_path)}
    with pytest.raises(cgroups.NoCgroup, match="No such file"):
        cgroups.delegated(environment)
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    with pytest.raises(cgroups.NoCgroup, match="no controller for pids"):
        cgroups.delegated(environment)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    group = cgroups.create(cgroups.delegated(environment), LIMITS)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (group / "memory.max").read_text() == str(LIMITS.memory_of_all)
    assert (group / "pids.max").read_text() == str(LIMITS.threads)
    (tmp_path / "sandbox-left").mkdir()
    os.utime(tmp_path / "sandbox-left", (0, 0))
    (tmp_path / "sandbox-new").mkdir()
    assert cgroups.remove_left(tmp_path) == 1
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {group.name, "sandbox-new"}


def test_disk_use_counts_each_file_once_and_refuses_what_it_cannot_measure(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 8192)
    alone = usage.disk([str(tmp_path)], [])
    os.link(tmp_path / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/usr")
    assert usage.disk([str(tmp_path)], []) - alone < 8192
    for number in range(10):
        (tmp_path / f"empty-{number}").touch()
    assert usage.disk([str(tmp_path)], []) - alone >= 10 * 4096
    nested = tmp_path
    for _ in range(210):
        nested = nested / "d"
    nested.mkdir(parents=True)
    with pytest.raises(usage.Unmeasurable):
        usage.disk([str(tmp_path)], [])
    assert usage.disk([str(tmp_path)], [], limit=0) > 0, "the walk has continued above the limit"
