"""The demo's experiment: a small network for scikit-learn's handwritten digits."""

from typing import Any

from jobs.spec.exports import DEFAULT_QUANTIZATION
from webapp.demo.client import Body
from webapp.demo.scenario import Row, Scenario

DATASET = MODEL = "digits"
EXAMPLES = 10

SPEC: dict[str, Any] = {
    "version": 1,
    "data": {
        "dataset": DATASET,
        "split": {"validation": 0.2, "test": 0.2, "seed": 0, "stratify": True},
    },
    "model": {"kind": "template", "template": "mlp", "args": {"layers": 1}},
    "fit": {
        "epochs": 100,
        "batch_size": 128,
        "early_stopping": {"monitor": "val_loss", "patience": 5},
    },
    "search": {
        "algorithm": "random",
        "objective": {"metric": "val_accuracy", "direction": "max"},
        "max_trials": 12,
        "executions_per_trial": 2,
        "seed": 7,
        "space": [
            {"name": "units", "kind": "int", "min": 32, "max": 128, "step": 32},
            {"name": "optimizer", "kind": "choice", "values": ["rmsprop", "adam"]},
            {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.4, "step": 0.2},
            {"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-2, "sampling": "log"},
        ],
    },
    "after": {
        "retrain": {"top": 3, "epochs_factor": 1.2, "patience": 10, "epochs_cap": 150},
        "ensemble": {"method": "weighted", "weights": "nelder-mead"},
        "quantize": {"mode": DEFAULT_QUANTIZATION.name},
        "register": {"model": MODEL, "what": ["best", "ensemble", "quantized"]},
    },
}

# A person who watches needs trainings of some seconds, for example to kill the runner of one.
WATCHED_SPEC: dict[str, Any] = SPEC | {
    "fit": SPEC["fit"] | {"batch_size": 16, "early_stopping": {"monitor": "val_loss", "patience": 20}},
    "search": SPEC["search"]
    | {
        "space": [
            {"name": "units", "kind": "int", "min": 128, "max": 512, "step": 128},
            *SPEC["search"]["space"][1:],
        ]
    },
}


def examples(preview: Body) -> tuple[list[Row], list[int]]:
    """Return the first rows' images and digits."""
    rows = preview["rows"][:EXAMPLES]
    images = [[[[pixel] for pixel in line] for line in row["image"]] for row in rows]  # 8 × 8 × 1
    return list(images), [int(row["digit"]) for row in rows]


DIGITS = Scenario(
    title="Digits search",
    dataset=DATASET,
    model=MODEL,
    spec=SPEC,
    watched_spec=WATCHED_SPEC,
    min_accuracy=0.95,
    examples=examples,
    things="digits",
)
