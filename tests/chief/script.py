"""An unmodified KerasTuner script. The test reads its files and can hold it in a trial."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import keras_tuner as kt

FOLDER = Path(sys.argv[1])


class Parabola(kt.RandomSearch):
    def run_trial(self, trial: Any, *args: Any, **kwargs: Any) -> float:
        hp = trial.hyperparameters
        x = hp.Float("x", -1.0, 1.0)
        if hp.Choice("kind", ["flat", "steep"]) == "steep":
            with hp.conditional_scope("kind", ["steep"]):
                x *= hp.Int("slope", 2, 5)
        (FOLDER / f"{self.tuner_id}-has-{trial.trial_id}").touch()
        while (FOLDER / f"hold-{self.tuner_id}").exists():
            time.sleep(0.05)
        return x * x


tuner = Parabola(max_trials=1, directory=FOLDER, project_name=os.environ["KERASTUNER_TUNER_ID"])
tuner.search()
(FOLDER / f"best-{tuner.tuner_id}").write_text(tuner.oracle.get_best_trials(1)[0].trial_id)
