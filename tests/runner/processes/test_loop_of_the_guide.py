"""The script of the guide's page about strategies, in a real runner with simulated devices."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.engine.helpers import profiled
from tests.runner.harness import runner
from tests.runner.processes.test_scripts import events_of, series, train_task

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "22-strategies.md"
LAYOUTS = {"one": (1, 1), "data": (8, 1), "mixed": (2, 4)}
SIMULATED = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}


class Run(NamedTuple):
    """The events of a run, and the lines that it printed."""

    events: list[Any]
    log: str

    def values(self, metric: str) -> list[float]:
        return [value for _, value in series(self.events, metric)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The script with each division of its devices."""
    folder = tmp_path_factory.mktemp("loop")
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    digits = profiled(folder / "digits", bundled="digits")
    found = {}
    with runner(folder / "runner") as process:
        for name, (data, model) in LAYOUTS.items():
            before = len(process.log.read_text())
            task = train_task(
                folder / name, text, dataset=digits, data={"dataset": "digits"}, env=SIMULATED,
                # The last batch of 1,078 rows has 54, which 8 devices do not divide.
                args={"epochs": 2, "batch": 64, "data": data, "model": model}, fit={"epochs": 2, "seed": 3},
            )  # fmt: skip
            found[name] = Run(process.run(task), process.log.read_text()[before:])
    return found


def test_the_script_of_the_guide_trains_and_saves_its_model(runs: dict[str, Run]) -> None:
    for run in runs.values():
        assert run.events[-1].type == "result", run.log
        assert "model.keras" in str(events_of(run.events, "artifact"))
    devices = {name: run.values("devices") for name, run in runs.items()}
    assert devices == {"one": [1, 1], "data": [8, 8], "mixed": [8, 8]}


@pytest.mark.parametrize("layout", ["data", "mixed"])
def test_its_losses_are_those_of_one_device(runs: dict[str, Run], layout: str) -> None:
    alone, several = runs["one"], runs[layout]
    first, second = alone.values("loss")
    assert second < first
    assert several.values("loss") == pytest.approx([first, second], rel=1e-5)
    assert several.values("val_accuracy") == alone.values("val_accuracy")


def test_each_device_has_its_part_of_a_kernel(runs: dict[str, Run]) -> None:
    parts = {name: re.findall(r"each device has (.*) of", run.log) for name, run in runs.items()}
    assert parts == {"one": ["(64, 64)"], "data": ["(64, 64)"], "mixed": ["(64, 16)"]}
