"""Runs in its own process with 4 simulated devices: fine-tunes with several meshes and prints the losses."""

import json
import sys
from pathlib import Path
from typing import Any

from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

Environment(threads=1, platform="cpu", simulated_devices=4).apply()
import_keras()

from jobs.contracts.experiment import ExperimentSpec  # noqa: E402  the environment comes first
from jobs.kinds.train.payload import TrainTask  # noqa: E402
from tests.engine.helpers import RecordingReport  # noqa: E402
from tests.engine.test_fine_tuning import LOSS, layered, spec, stored  # noqa: E402
from tests.engine.training import blobs_file  # noqa: E402
from workers.engine.tasks import train  # noqa: E402

LAYOUT = [{"match": "(first|second)/kernel", "axes": [None, "model"]}]
MESHES: dict[str, Any] = {
    "one": {},
    "data": {"mesh": {"shape": [4], "axis_names": ["data"], "simulate": 4}},
    "mixed": {
        "mesh": {"shape": [2, 2], "axis_names": ["data", "model"], "simulate": 4, "layout": LAYOUT},
    },
}  # fmt: skip


def main(folder: Path) -> None:
    """Fine-tune the same version with each mesh."""
    data, base = blobs_file(folder), stored(layered(), folder)
    found = {}
    for name, mesh in MESHES.items():
        place = folder / name
        place.mkdir()
        body = {**spec(base, head="new", freeze_to="norm").to_json(), **mesh}
        task = TrainTask(
            folder=str(place), checkpoints=str(place / "c"), spec=ExperimentSpec.model_validate(body),
            dataset=data, retrain=None, objective=LOSS, model_name="m", base_model=base,
        )  # fmt: skip
        found[name] = train.run(task, RecordingReport(place))["metrics"]["validation"]["loss"]
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
