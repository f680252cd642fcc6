"""Packages are installed in a sandbox, from a folder of wheels or an index of this machine."""

import importlib.metadata
import json
import os
import socket
import subprocess
import sys
import threading
import venv
from dataclasses import replace
from typing import Any

import pytest

from jobs.messages.sandbox import Level
from tests.environments.conftest import Bench, python_of, served, serving
from tests.environments.packages import index_of, source, wheel
from tests.sandbox.conftest import CASES, Cases, as_user, cases
from workers.confinement.environments import contents
from workers.confinement.environments.building import BuildLimits
from workers.confinement.environments.failures import BuildFailed, BuildStopped
from workers.confinement.environments.request import NeededPackages
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.isolation.view import CODE_ROOT

__all__ = ["cases"]


def test_an_environment_has_its_packages_and_behind_them_those_of_this_program(bench: Bench) -> None:
    wheel(bench.wheels, "first", requires=("second>=2",))
    wheel(bench.wheels, "second", "2.5")
    held = bench.ensure("first")
    assert [(package.name, package.version) for package in held.facts.packages] == [
        ("first", "1.0"),
        ("second", "2.5"),
    ]
    printed = python_of(held, "import first, second, pydantic, sys; print(second.VERSION, sys.prefix)")
    assert printed == f"2.5 {held.folder}/venv"
    assert held.facts.bytes > 0
    assert " + first==1.0" in bench.lines
    assert not any(str(held.folder) in line for line in bench.lines)


def test_nobody_can_change_a_built_environment(bench: Bench) -> None:
    wheel(bench.wheels, "first")
    held = bench.ensure("first")
    modes = {path: path.lstat() for path in (held.folder / "venv").rglob("*") if not path.is_symlink()}
    assert {facts.st_mode & 0o222 for facts in modes.values()} == {0}
    assert {facts.st_uid for facts in modes.values()} == {os.geteuid()}


def test_equal_requirements_in_another_order_share_one_environment(bench: Bench) -> None:
    wheel(bench.wheels, "first")
    wheel(bench.wheels, "second")
    one = bench.ensure("first", "Second>=1")
    built = len(bench.lines)
    other = bench.ensure("second>=1", "first")
    assert other.folder == one.folder
    assert len(bench.lines) == built


def test_a_version_that_contradicts_the_engine_is_refused_with_both_versions(bench: Bench) -> None:
    present = importlib.metadata.version("numpy")
    with pytest.raises(BuildFailed, match=f"numpy: the code asks for numpy<2, .*{present}") as failed:
        bench.ensure("numpy<2")
    assert failed.value.code == "package_conflict"
    assert bench.lines == []


def test_a_conflict_of_a_dependency_with_the_engine_names_package_and_versions(bench: Bench) -> None:
    present = importlib.metadata.version("numpy")
    wheel(bench.wheels, "first", requires=("numpy<2",))
    with pytest.raises(BuildFailed) as failed:
        bench.ensure("first")
    assert failed.value.code == "package_conflict"
    assert "all versions of first depend on numpy<2" in failed.value.message
    assert f"this installation has numpy=={present}" in failed.value.message


def test_a_script_may_bring_its_own_version_of_a_package_of_the_engine(bench: Bench) -> None:
    wheel(bench.wheels, "six", "0.5")
    held = bench.ensure("six<1", for_engine=False)
    assert python_of(held, "import six; print(six.VERSION)") == "0.5"


def test_a_package_of_this_program_need_not_be_in_the_index_and_keeps_its_version(bench: Bench) -> None:
    present = importlib.metadata.version("six")
    wheel(bench.wheels, "first", requires=("pydantic>=2", "six>=1"))
    wheel(bench.wheels, "six", "99.0")
    for for_engine in (True, False):
        held = bench.ensure("first", for_engine=for_engine)
        assert [package.name for package in held.facts.packages] == ["first"]
        program = "import importlib.metadata as m, pydantic; print(m.version('six'), m.version('pydantic'))"
        assert python_of(held, program) == f"{present} {importlib.metadata.version('pydantic')}"
        (site_packages,) = (held.folder / "venv").glob("lib/python*/site-packages")
        assert [path.name for path in site_packages.glob("*.dist-info")] == ["first-1.0.dist-info"]


@pytest.mark.parametrize(
    ("requirement", "code", "words"),
    [
        ("absent", "package_not_found", "no package 'absent'"),
        ("first==9", "package_not_found", "no version of first that fits 'first==9'"),
        ("-e .", "package_requirement", "options of the installer"),
        ("x @ https://example.com/x.whl", "package_requirement", "not from addresses"),
    ],
)
def test_a_failed_installation_names_its_cause(bench: Bench, requirement: str, code: str, words: str) -> None:
    wheel(bench.wheels, "first")
    with pytest.raises(BuildFailed) as failed:
        bench.ensure(requirement)
    assert failed.value.code == code
    assert words in failed.value.message
    assert bench.environments.folder.present() == []


def test_a_source_distribution_that_cannot_be_built_is_named(bench: Bench) -> None:
    source(bench.wheels, "broken", "raise RuntimeError('no compiler')")
    with pytest.raises(BuildFailed, match=r"broken 1\.0 has no wheel") as failed:
        bench.ensure("broken")
    assert failed.value.code == "package_build"
    assert any("no compiler" in line for line in bench.lines)


@pytest.mark.parametrize(("worker", "level"), CASES)
def test_wheels_and_source_distributions_are_installed_at_each_level(
    worker: str, level: Level, cases: Cases, users: RunnerUsers
) -> None:
    cases.require(worker, level)
    results = results_at("tests.environments.each_kind", worker, level, users)
    refused = results.pop("source of index") if level is Level.PROCESS else None
    assert refused is None or "cannot restrict the network, and only sources execute code" in refused
    assert results == {name: f"{name.partition(' ')[0]} at {level}" for name in results}
    assert len(results) == (3 if level is Level.PROCESS else 4)


def results_at(module: str, worker: str, level: Level, users: RunnerUsers) -> dict[str, Any]:
    """Return the output of a module that builds at a level; skip the test if it cannot."""
    command = [sys.executable, "-m", module, level]
    printed = (
        as_user(module, level, users=users)
        if worker == "user"
        else subprocess.run(command, cwd=CODE_ROOT, capture_output=True, text=True, check=True).stdout
    )
    results: dict[str, Any] = json.loads(printed)
    if "missing" in results:
        # An installation needs the Python of the worker, which may be in a closed home.
        pytest.skip(results["missing"])
    return results


def test_a_build_reaches_the_index_and_nothing_else(cases: Cases, users: RunnerUsers) -> None:
    worker, level = cases.strongest()
    if level is Level.PROCESS:
        pytest.skip("only wheels are installed there, which execute nothing")
    outcome = results_at("tests.environments.hostile_build", worker, level, users)
    assert "/simple/hostile/" in outcome.pop("asked")
    assert outcome.pop("received") == []
    attempts = outcome.pop("attempts")
    # At the levels with a root of their own, a datagram reaches no one, and the folder is one of the build.
    possible = {name for name, result in attempts.items() if result == "possible"}
    assert possible <= ({"datagram", "outside"} if level is not Level.LANDLOCK else set()), attempts
    assert outcome == {"outside": False, "level": level}


def test_a_host_that_is_not_the_index_is_named(bench: Bench) -> None:
    wheel(bench.wheels, "first")
    with serving(bench.root) as index, serving(bench.root) as files:
        page = bench.root / "simple" / "first"
        page.mkdir(parents=True)
        link = (
            f'<a href="{files.address.replace("127.0.0.1", "localhost")}/wheels/first-1.0-py3-none-any.whl">'
        )
        (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}first-1.0-py3-none-any.whl</a>")
        bench.index = served(bench, index.address)
        with pytest.raises(BuildFailed, match="refers to the host localhost") as failed:
            bench.ensure("first")
        assert failed.value.code == "package_host_refused"
        assert files.asked == []


def test_an_index_that_does_not_answer_is_named_as_the_cause(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    bench.index = served(bench, address)
    with pytest.raises(BuildFailed, match=r"at 127\.0\.0\.1 could not be reached") as failed:
        bench.ensure("first")
    assert failed.value.code == "package_index"


def test_with_a_password_in_the_address_only_wheels_are_installed_and_it_is_in_no_output(
    bench: Bench,
) -> None:
    source(bench.wheels, "sourced", "found = 1")
    with serving(bench.root) as index:
        index_of(bench.wheels, bench.root)
        plain = served(bench, index.address)
        secret = plain.urls[0].replace("http://", "http://reader:correct-horse@")
        bench.index = plain._replace(urls=(secret,))
        with pytest.raises(
            BuildFailed, match=r"Only wheels are installed here: the address .* has a password"
        ):
            bench.ensure("sourced")
    assert not any("correct-horse" in line for line in bench.lines)


def test_a_build_that_takes_too_long_is_ended(bench: Bench) -> None:
    bench.builder = replace(bench.builder, limits=BuildLimits(seconds=3))
    source(bench.wheels, "slow", "import time; time.sleep(60)")
    with pytest.raises(BuildFailed, match="longer than 3 s"):
        bench.ensure("slow")


def test_a_build_that_is_not_needed_any_more_ends(bench: Bench) -> None:
    source(bench.wheels, "slow", "import time; time.sleep(60)")

    def receive(line: str) -> None:
        if "Building slow" in line:
            bench.stopped.set()

    with pytest.raises(BuildStopped):
        bench.ensure("slow", receive=receive)
    assert not list((bench.root / "environments").glob("*/venv"))


def test_a_build_that_writes_too_much_is_ended(bench: Bench) -> None:
    bench.builder = replace(bench.builder, limits=BuildLimits(seconds=60, bytes=64 * 2**20))
    source(
        bench.wheels, "large", 'open("/tmp/large", "wb").write(bytes(80 * 2**20)); import time; time.sleep(9)'
    )
    with pytest.raises(BuildFailed):
        bench.ensure("large")


def test_two_runs_that_need_the_same_build_it_once(bench: Bench) -> None:
    source(bench.wheels, "slow", "import time; time.sleep(1); found = 1")
    results: list[object] = []
    lines: list[list[str]] = [[], []]

    def run(number: int) -> None:
        results.append(bench.ensure("slow", receive=lines[number].append).folder)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert len(results) == 2
    built, waited = sorted(lines, key=len, reverse=True)
    assert " + slow==1.0" in built
    assert waited == ["Another run installs the same packages; this one waits for it."]


def test_packages_that_pip_has_installed_and_recorded_are_installed_again_by_uv(bench: Bench) -> None:
    """Earlier releases had both."""
    file = wheel(bench.wheels, "first")
    place = bench.root / "of-pip"
    venv.create(place, symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), "install", "--no-index"]
    subprocess.run([*command, "--quiet", str(file)], check=True)
    recorded = contents.installed(place, ())
    held = bench.ensure("first", packages=recorded)
    assert held.facts.packages == recorded


def test_an_environment_is_built_again_from_its_record_or_refused(bench: Bench) -> None:
    wheel(bench.wheels, "first")
    held = bench.ensure("first")
    recorded = held.facts.as_set()
    assert [(package.name, package.version, len(package.digest)) for package in recorded.packages] == [
        ("first", "1.0", 64)
    ]
    # The environment that was resolved is that of the record.
    exact = NeededPackages(("first",), for_engine=True, packages=recorded.packages)
    assert bench.environments.choose(exact) == held.folder.name
    assert bench.environments.choose(NeededPackages(("first",), True, resolution="new")) != held.folder.name
    held.release()
    bench.environments.evict(0)
    wheel(bench.wheels, "first", "2.0")
    again = bench.ensure("first", packages=recorded.packages)
    assert again.facts.installed == recorded.digest
    assert python_of(again, "import first; print(first.VERSION)") == "1.0"
    again.release()
    bench.environments.evict(0)
    wheel(bench.wheels, "first", code="VERSION = 'altered'\n")
    with pytest.raises(BuildFailed, match=r"first 1\.0 has other files than before") as failed:
        bench.ensure("first", packages=recorded.packages)
    assert failed.value.code == "packages_changed"
    (bench.wheels / "first-1.0-py3-none-any.whl").unlink()
    with pytest.raises(
        BuildFailed, match=r"cannot be installed again exactly: .*no version of first that fits"
    ):
        bench.ensure("first", packages=recorded.packages)
    assert bench.environments.folder.present() == []
