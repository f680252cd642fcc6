"""Versions that are larger than one device are served on their mesh: each device has only its part."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import psutil
import pytest

from jobs.messages.release import Release, ReleasedMesh, ReleasedRule, ReleasedVersion
from tests.present import present
from tests.serving.fakes import HTTP, FakeDashboard, ServerProcess, running, until
from tests.serving.processes import small_devices

RULES = (
    ReleasedRule(match="dense_./kernel", axes=("data", "model")),
    ReleasedRule(match="dense_./bias", axes=("model",)),
)
MESH = ReleasedMesh(shape=(2, 4), axis_names=("data", "model"), batch_axis="data", layout=RULES)
COLUMNS = ReleasedMesh(
    shape=(8,),
    axis_names=("model",),
    batch_axis=None,
    layout=(ReleasedRule(match="dense_./kernel", axes=(None, "model")),),
)
SIXTEEN = MESH.model_copy(update={"shape": (4, 4)})
ROWS = np.random.default_rng(3).normal(size=(100, 4)).round(3)


def released(model: str, generation: int, *versions: ReleasedVersion) -> Release:
    """Return a release whose production is the last version."""
    return Release(
        model=model,
        generation=generation,
        production=versions[-1].number if versions else None,
        standby=tuple(version.number for version in versions[:-1]),
        versions=versions,
        issued_at="x",
    )


def wide(
    dashboard: FakeDashboard, files: dict[str, bytes], number: int, mesh: ReleasedMesh | None
) -> ReleasedVersion:
    return dashboard.add(number, files["wide"], mesh=mesh)


def predictions(url: str, model: str, rows: int, version: int | None = None) -> Any:
    named = f"{model}/versions/{version}" if version else model
    answer = HTTP.post(f"{url}/v1/models/{named}:predict", json={"instances": ROWS[:rows].tolist()})
    assert answer.status_code == 200, answer.text
    return np.array(answer.json()["predictions"])


@pytest.fixture(scope="module")
def own(model_files: dict[str, bytes]) -> Iterator[FakeDashboard]:
    fake = FakeDashboard()
    yield fake
    fake.close()


@pytest.fixture(scope="module")
def small(
    own: FakeDashboard, model_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server whose devices have `LIMIT` bytes; it serves the wide model as `wide` and as `columns`."""
    own.publish(released("wide", 1, wide(own, model_files, 1, MESH)))
    own.publish(released("columns", 1, wide(own, model_files, 1, COLUMNS)))
    home = tmp_path_factory.mktemp("small-devices")
    with running(home, own, module="tests.serving.processes.small_devices") as process:
        own.serves("wide", 1)
        own.serves("columns", 1)
        yield process


@pytest.fixture
def shortage(small: ServerProcess) -> Iterator[Path]:
    """While this file exists, one device has too little free memory for any model."""
    file = small.home / "home" / "seen" / small_devices.SHORT
    file.parent.mkdir(exist_ok=True)
    file.touch()
    yield file
    file.unlink(missing_ok=True)


def seen_by(server: ServerProcess, child: psutil.Process) -> dict[str, Any]:
    """Return the number of devices of a model process, and the most bytes that one of them had, by stage."""
    found: dict[str, Any] = json.loads((server.home / "home" / "seen" / f"{child.pid}.json").read_text())
    return found


@pytest.fixture(scope="module")
def whole(
    server: ServerProcess, dashboard: FakeDashboard, model_files: dict[str, bytes]
) -> Iterator[ServerProcess]:
    """An ordinary server, which serves the same file on one device."""
    dashboard.publish(released("whole", 1, wide(dashboard, model_files, 1, MESH)))
    dashboard.serves("whole", 1)
    yield server
    dashboard.publish(released("whole", 2))
    dashboard.serves("whole", 2)


@pytest.mark.parametrize("model", ["wide", "columns"])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 31, 64, 100])
def test_predictions_are_those_of_one_device_for_any_number_of_rows(
    small: ServerProcess, whole: ServerProcess, model: str, rows: int
) -> None:
    ours, expected = predictions(small.url, model, rows), predictions(whole.url, "whole", rows)
    assert ours.shape == (rows, 3)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_no_device_has_more_than_its_part_while_it_loads_and_predicts(
    small: ServerProcess, model_files: dict[str, bytes]
) -> None:
    predictions(small.url, "wide", 100)
    most = seen_by(small, present(small.child_of("wide")))["most"]
    assert set(most) == {"assign", "batch"}
    # An eighth of the weights; the first kernel of 8 KiB, the statistics and the rows are small.
    share = len(model_files["wide"]) / 8 + (64 << 10)
    # A kernel has its zeros too while its values are assigned.
    limits = {"batch": share, "assign": share + 512 * 512 * 4 / 8}
    assert {stage: size for stage, size in most.items() if size > limits[stage]} == {}
    assert len(model_files["wide"]) > 2 * small_devices.LIMIT


def test_a_process_that_is_killed_returns_on_its_mesh(small: ServerProcess, whole: ServerProcess) -> None:
    child = present(until(lambda: small.child_of("wide")))
    child.kill()
    # A request that is sent meanwhile waits for the next process.
    np.testing.assert_allclose(
        predictions(small.url, "wide", 5), predictions(whole.url, "whole", 5), rtol=1e-5, atol=1e-6
    )
    again = present(until(lambda: small.child_of("wide")))
    assert again.pid != child.pid
    assert not child.is_running()
    assert seen_by(small, again)["devices"] == small_devices.MOST
    # The file of its weights, and nothing that was made while it was loaded.
    left = [path for path in (small.home / "home" / "artifacts").rglob("*") if path.is_file()]
    assert [path.suffix for path in left] == [".keras"]


def test_the_next_version_is_loaded_beside_the_one_that_answers(
    small: ServerProcess, own: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    first, second = (wide(own, model_files, number, COLUMNS) for number in (1, 2))
    own.publish(released("columns", 2, first, second))
    own.serves("columns", 2)
    own.is_warm("columns", 1, 2)
    np.testing.assert_array_equal(
        predictions(small.url, "columns", 3, version=1), predictions(small.url, "columns", 3)
    )


def test_a_server_with_too_few_devices_refuses_it_with_both_sizes(
    small: ServerProcess, own: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    own.publish(released("sixteen", 1, wide(own, model_files, 1, SIXTEEN)))
    error = until(lambda: own.last_report("sixteen").get("error"))
    assert error == (
        "its weights have 0.002 GiB, and the cpu that this process may use has 0.000977 GiB: "
        "load it where one device has more memory, such as the CPU of a larger machine, or in a process with "
        "the 16 devices of its mesh (this one has 8), or train a smaller model"
    )
    answer = httpx2.post(f"{small.url}/v1/models/sixteen:predict", json={"instances": ROWS[:1].tolist()})
    assert answer.status_code == 503
    own.publish(released("sixteen", 2))
    own.serves("sixteen", 2)


def test_a_version_without_a_mesh_is_served_once_a_release_names_it(
    small: ServerProcess, own: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    own.publish(released("late", 1, wide(own, model_files, 1, None)))
    assert "train a smaller model" in until(lambda: own.last_report("late").get("error"))
    own.publish(released("late", 2, wide(own, model_files, 1, MESH)))
    own.serves("late", 2)
    assert len(predictions(small.url, "late", 3)) == 3
    own.publish(released("late", 3))
    own.serves("late", 3)


def test_a_version_that_fits_is_served_on_one_device(
    small: ServerProcess, own: FakeDashboard, model_files: dict[str, bytes]
) -> None:
    own.publish(released("fitting", 1, own.add(1, model_files["telling-1"], mesh=MESH)))
    own.serves("fitting", 1)
    assert seen_by(small, present(until(lambda: small.child_of("fitting"))))["devices"] == 1
    own.publish(released("fitting", 2))
    own.serves("fitting", 2)


def test_a_version_for_which_one_device_lacks_memory_uses_its_mesh_until_it_starts_again(
    small: ServerProcess, own: FakeDashboard, model_files: dict[str, bytes], shortage: Path
) -> None:
    own.publish(released("short", 1, own.add(1, model_files["narrow"], mesh=MESH)))
    own.serves("short", 1)
    child = present(until(lambda: small.child_of("short")))
    assert seen_by(small, child)["devices"] == small_devices.MOST
    shortage.unlink()
    child.kill()
    assert len(predictions(small.url, "short", 3)) == 3
    assert seen_by(small, present(until(lambda: small.child_of("short"))))["devices"] == 1
    own.publish(released("short", 2))
    own.serves("short", 2)


def test_a_version_without_memory_on_one_device_and_on_its_mesh_tries_both_again(
    small: ServerProcess, own: FakeDashboard, model_files: dict[str, bytes], shortage: Path
) -> None:
    own.publish(released("both", 1, own.add(1, model_files["narrow"], mesh=SIXTEEN)))
    error = until(lambda: own.last_report("both").get("error"))
    assert error.startswith("on one device, its weights have ")
    assert "too little memory is free" in error
    assert "; on its mesh, " in error
    assert "16 devices" in error
    shortage.unlink()
    own.serves("both", 1)
    assert len(predictions(small.url, "both", 3)) == 3
    own.publish(released("both", 2))
    own.serves("both", 2)
