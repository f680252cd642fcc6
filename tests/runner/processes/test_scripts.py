"""User scripts in a real runner process: their reports, their files and their failures."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.sandbox import Level
from jobs.messages.task import DatasetFile, OwnCode, OwnCodeFile
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from tests.engine.helpers import profiled
from tests.present import present
from tests.runner.harness import RunnerProcess, runner


def trial_task(
    folder: Path,
    text: str,
    *,
    values: Sequence[dict[str, Any]] = ({"rate": 0.5},),
    seeds: Sequence[int] = (7,),
    **fields: Any,
) -> TrialTask:
    """Return a trial task for a search over a script's arguments."""
    search = fields.pop("search", {})
    trials = tuple(
        TrialPlan(
            number=number,
            values=arguments,
            spec=spec(args={**fields.get("args", {}), **arguments}, search=search),
            executions=tuple(ExecutionPlan(execution=i, seed=seed) for i, seed in enumerate(seeds, 1)),
        )
        for number, arguments in enumerate(values, 1)
    )
    return TrialTask(
        folder=str(folder),
        code=code(folder, {"train.py": REPORT + text}),
        spec=spec(search=search, **fields),
        objective=OBJECTIVE,
        dataset=None,
        trials=trials,
    )


DIGEST = "a" * 64
OBJECTIVE = {"metric": "val_accuracy", "direction": "max"}
REPORT = (
    'import json\ndef report(step, **m):\n    print(json.dumps({"step": step, "metrics": m}), flush=True)\n'
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def warm(base: Path) -> Iterator[RunnerProcess]:
    """One runner for all tests that leave it alive."""
    with runner(base / "warm") as process:
        yield process


def code(folder: Path, files: dict[str, str]) -> OwnCode:
    """Return a code version with these files."""
    stored = []
    for number, (path, text) in enumerate(files.items()):
        place = folder / "store" / str(number)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        stored.append(OwnCodeFile(path=path, place=str(place)))
    return OwnCode(digest=DIGEST, files=tuple(stored), minimum=Level.PROCESS, network=False)


def spec(
    args: dict[str, Any] | None = None,
    *,
    entry: str = "train.py",
    search: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None,
    fit: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    mesh: dict[str, Any] | None = None,
) -> Any:
    model = {"kind": "script", "digest": DIGEST, "entry": entry, "args": args or {}, "env": env or {}}
    parts = {"model": model, "fit": fit or {"epochs": 3}}
    if search is not None:
        parts["search"] = {"objective": OBJECTIVE, "space": [space("rate")], **search}
    if data is not None:
        parts["data"] = data
    if mesh is not None:
        parts["mesh"] = mesh
    return parts


def space(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "float", "min": 0.0, "max": 1.0}


def train_task(
    folder: Path,
    text: str,
    *,
    files: dict[str, str] | None = None,
    dataset: DatasetFile | None = None,
    **fields: Any,
) -> TrainTask:
    """Return the task for a single script run."""
    return TrainTask(
        folder=str(folder),
        code=code(folder, {"train.py": REPORT + text, **(files or {})}),
        spec=spec(**fields),
        dataset=dataset,
        retrain=None,
        objective=OBJECTIVE,
        model_name="m",
    )


def events_of(events: Iterable[Any], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


def series(events: Iterable[Any], name: str) -> list[tuple[Any, Any]]:
    """Return a metric's points, (step, value)."""
    points: list[tuple[Any, Any]] = []
    for table in events_of(events, "points"):
        if name in table.names:
            points += zip(table.at, table.values[table.names.index(name)], strict=True)
    return points


def test_a_script_gets_its_arguments_and_its_metrics_become_points(warm: RunnerProcess, base: Path) -> None:
    text = "import sys\nfor step in (1, 2, 3):\n    report(step, loss=1 / step)\nprint(sys.argv[1:])\n"
    args = {"epochs": 3, "rate": 1e-5, "name": "a b", "shift": -0.5, "fast": True, "slow": False}
    events = warm.run(train_task(base / "args", text, args=args))
    assert events[-1].type == "result"
    assert series(events, "loss") == [(1, 1), (2, 0.5), (3, pytest.approx(1 / 3))]
    assert {table.x for table in events_of(events, "points")} == {"step"}
    assert events[-1].result["metrics"] == {"reported": {"loss": pytest.approx(1 / 3)}}
    expected = ["--epochs", "3", "--rate", "1e-05", "--name", "a b", "--shift=-0.5", "--fast"]
    assert str(expected) in warm.log.read_text()


def test_a_script_needs_neither_keras_nor_jax(warm: RunnerProcess, base: Path) -> None:
    events = warm.run(train_task(base / "plain", "report(1, loss=1.0)\n"))
    record = events_of(events, "started")[0].record
    assert record["devices"] == []
    modules = {
        line.rpartition(" ")[2] for line in Path(f"/proc/{warm.process.pid}/maps").read_text().splitlines()
    }
    assert not any("jaxlib" in module for module in modules)


def test_lines_that_are_no_metrics_go_to_the_log_and_metrics_do_not(warm: RunnerProcess, base: Path) -> None:
    text = 'print("hello from the script")\nreport(1, unseen=1.0)\nprint("{not json}")\n'
    warm.run(train_task(base / "log", text))
    log = warm.log.read_text()
    assert "hello from the script" in log
    assert "{not json}" in log
    assert "unseen" not in log


def test_the_helper_can_be_imported_and_names_the_folders(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import trainyard_report as ty\n"
        "ty.report(1, loss=0.5)\n"
        "open(ty.output('nested/notes.txt'), 'w').write(f'{ty.seed()} {ty.data()}')\n"
    )
    folder = base / "helper"
    events = warm.run(train_task(folder, text, fit={"seed": 11}))
    assert series(events, "loss") == [(1, 0.5)]
    (written,) = events_of(events, "artifact")
    assert (written.role, written.name) == ("output", "nested/notes.txt")
    assert (folder / written.path).read_text() == "11 None"


def test_a_module_runs_with_the_files_beside_it_and_its_own_variables(
    warm: RunnerProcess, base: Path
) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/main.py": "import os, pkg.other\nfrom pathlib import Path\n"
        "print(Path('settings.txt').read_text(), os.environ['MODE'], pkg.other.NAME)\n"
        "Path('settings.txt').write_text('changed')\n",
        "pkg/other.py": "NAME = 'other'\n",
        "settings.txt": "read from the version",
    }
    task = train_task(base / "module", "", files=files, entry="-m pkg.main", env={"MODE": "quick"})
    events = warm.run(task)
    assert events[-1].type == "result"
    assert "read from the version quick other" in warm.log.read_text()
    # The script wrote into a copy.
    assert "changed" not in {Path(file.place).read_text() for file in present(task.code).files}


def test_a_keras_file_of_the_outputs_is_the_model_and_links_are_refused(
    warm: RunnerProcess, base: Path
) -> None:
    text = (
        "import os\n"
        "out = os.environ['TRAINYARD_OUTPUT']\n"
        "open(f'{out}/model.keras', 'wb').write(b'weights')\n"
        "os.symlink('/etc/passwd', f'{out}/stolen')\n"
        "report(1, loss=1.0)\n"
    )
    events = warm.run(train_task(base / "model", text))
    assert [(e.role, e.name) for e in events_of(events, "artifact")] == [("model", "model.keras")]
    (warned,) = [e for e in events_of(events, "warning") if e.code == "outputs_left_out"]
    assert "'stolen' (it is a link or no ordinary file)" in warned.message


def test_a_table_arrives_as_parquet_with_the_part_of_each_row(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import os, collections, pyarrow.parquet as pq\n"
        "table = pq.read_table(os.environ['TRAINYARD_DATA'])\n"
        "parts = collections.Counter(table['trainyard_part'].to_pylist())\n"
        "report(1, columns=len(table.column_names), rows=len(table), **parts)\n"
    )
    dataset = profiled(base / "iris", bundled="iris")
    data = {"dataset": "iris", "split": {"validation": 0.2, "test": 0.1}}
    events = warm.run(train_task(base / "parquet", text, dataset=dataset, data=data))
    reported = events[-1].result["metrics"]["reported"]
    assert reported == {"columns": 6, "rows": 150, "train": 105, "validation": 30, "test": 15}


def test_images_arrive_as_arrays(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import os, numpy as np\n"
        "data = np.load(os.environ['TRAINYARD_DATA'])\n"
        "report(1, rows=len(data['x']), labels=len(data['class_labels']),\n"
        "       train=int((data['trainyard_part'] == 'train').sum()), y=int(data['y'].max()))\n"
    )
    dataset = profiled(base / "digits", bundled="digits")
    events = warm.run(train_task(base / "npz", text, dataset=dataset, data={"dataset": "digits"}))
    reported = events[-1].result["metrics"]["reported"]
    assert (reported["rows"], reported["labels"], reported["y"]) == (1797, 10, 9)
    assert 1000 < reported["train"] < 1100


def test_files_in_the_working_folder_of_a_single_run_are_kept_and_all_else_in_it_is_removed(
    warm: RunnerProcess, base: Path
) -> None:
    folder = base / "tidy"
    text = (
        "import os, pathlib\n"
        "report(1, loss=1.0)\n"
        "for name in ('model.keras', 'plots/loss.txt', '__pycache__/a.pyc', '.cache/b', 'same', 'other'):\n"
        "    path = pathlib.Path(name)\n"
        "    path.parent.mkdir(exist_ok=True)\n"
        "    path.write_text(name)\n"
        "os.symlink('/etc', 'folder')\n"
        "for name, written in (('same', 'same'), ('other', 'another text')):\n"
        "    pathlib.Path(os.environ['TRAINYARD_OUTPUT'], name).write_text(written)\n"
        "pathlib.Path('settings.txt').write_text('changed')\n"
    )
    files = {"settings.txt": "read", "unchanged.txt": "read"}
    events = warm.run(train_task(folder, text, files=files))
    kept = [(e.role, e.name) for e in events_of(events, "artifact")]
    assert kept == [
        ("output", "other"),
        ("output", "same"),
        ("model", "model.keras"),
        ("output", "settings.txt"),
        ("output", "plots/loss.txt"),
    ]
    left = {str(path.relative_to(folder / "run")) for path in (folder / "run").rglob("*") if path.is_file()}
    assert left == {
        "output/other", "output/same", "work/model.keras", "work/settings.txt", "work/plots/loss.txt",
        "work/same", "work/other",
    }  # fmt: skip
    (warned,) = events_of(events, "warning")
    assert warned.message == (
        "Files that the script wrote were not kept: "
        "'other' (the folder of outputs has another file of this name)."
    )


def test_a_script_that_puts_a_link_in_place_of_its_folder_removes_nothing_elsewhere(
    warm: RunnerProcess, base: Path
) -> None:
    elsewhere = base / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("kept")
    text = (
        "import os\n"
        "report(1, loss=1.0)\n"
        "work = os.getcwd()\n"
        "os.rename(work, work + '-moved')\n"
        f"os.symlink({str(elsewhere)!r}, work)\n"
    )
    events = warm.run(train_task(base / "link", text))
    assert events[-1].type == "result"
    assert not events_of(events, "artifact")
    assert (elsewhere / "precious").exists()


def test_the_numbers_of_numpy_are_reported(warm: RunnerProcess, base: Path) -> None:
    text = (
        "import numpy as np, trainyard_report\ntrainyard_report.report(np.int64(2), loss=np.float32(0.5))\n"
    )
    assert series(warm.run(train_task(base / "numpy", text)), "loss") == [(2, 0.5)]


def test_a_script_sees_the_simulated_devices_of_its_mesh_and_its_axes(base: Path) -> None:
    text = (
        "import os, jax\n"
        "mesh = json.loads(os.environ['TRAINYARD_MESH'])\n"
        "grid = jax.make_mesh(tuple(mesh['axes'].values()), tuple(mesh['axes']))\n"
        "report(1, devices=jax.device_count(), model=grid.shape['model'], batch=len(mesh['batch_axis']))\n"
        "report(2, own=os.environ['XLA_FLAGS'].count('--xla_cpu_enable_fast_math=false'))\n"
    )
    mesh = {"shape": [2, 3], "axis_names": ["data", "model"], "simulate": 6}
    env = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}
    with runner(base / "mesh") as process:
        events = process.run(train_task(base / "mesh", text, mesh=mesh, env=env, fit={"epochs": 3}))
    assert events[-1].type == "result", events[-1]
    assert [series(events, name)[0][1] for name in ("devices", "model", "batch", "own")] == [6, 3, 4, 1]
