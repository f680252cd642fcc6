"""Small experiments on real data."""

from typing import Any

Spec = dict[str, Any]


def spec(dataset: str = "iris", **parts: Any) -> Spec:
    """Return an experiment that trains for a second or two; `parts` replace whole sections."""
    return {
        "version": 1,
        "data": {"dataset": dataset, "split": {"validation": 0.2, "test": 0.2, "seed": 0}},
        "model": {"kind": "template", "template": "mlp", "args": {"units": 16, "layers": 1}},
        "fit": {"epochs": 20, "batch_size": 16, "learning_rate": 0.02, "seed": 3},
        **parts,
    }


def search(algorithm: str = "random", *, metric: str = "val_loss", **parts: Any) -> Spec:
    """Return a spec's search part."""
    return {
        "algorithm": algorithm,
        "objective": {"metric": metric, "direction": "max" if "accuracy" in metric else "min"},
        "max_trials": 2,
        "executions_per_trial": 2,
        "seed": 7,
        "space": [{"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8}],
        **parts,
    }


def whole_line(model: str) -> Spec:
    """Return every step that may follow a search."""
    return {
        "retrain": {"top": 2, "patience": 5, "epochs_cap": 20},
        "ensemble": {"method": "weighted", "weights": "nelder-mead"},
        "quantize": {"mode": "int8"},
        "register": {"model": model, "what": ["best", "ensemble", "quantized"]},
    }
