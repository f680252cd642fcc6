"""The steps for the search and for the jobs that follow it."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.algorithms.info import AlgorithmInfo
from jobs.spec.exports import DEFAULT_QUANTIZATION, QUANTIZATIONS
from webapp.forms.experiments.experiment.description import (
    Field,
    Group,
    Option,
    Section,
    argument,
    arguments,
)
from webapp.forms.experiments.experiment.rows import OBJECTIVES, SPACE, SPACE_COVERS

F = Field


def titles(infos: Iterable[AlgorithmInfo]) -> str:
    """Return the algorithms' names as they appear in a sentence."""
    *others, last = [info.title for info in infos]
    return f"{', '.join(others)} and {last}" if others else last


SEARCH_BEGINS: dict[str, Any] = {
    "algorithm": "random",
    "max_trials": 12,
    "executions_per_trial": 2,
    "space": [{"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"}],
}
P = partial(argument, "/search/pruner/kind")
PRUNING = Group(
    "Pruning",
    (
        F(
            "/search/pruner/kind",
            "Rule",
            options=(
                Option('"median"', "worse than half of the others"),
                Option('"asha"', "not among the best at a rung (ASHA)"),
                Option('"hyperband"', "the same in brackets (Hyperband)"),
            ),
        ),
        P("startup_trials", "Not before", "Number of trials that have reached the epoch."),
        P("warmup_epochs", "Not in the first", "Epochs."),
        P("interval", "Look every", "Epochs."),
        P("factor", "Factor", "One of this many trials is promoted at each rung."),
        P("min_epochs", "First rung after", "Epochs."),
        P("max_epochs", "Last rung after", "Epochs; all epochs of the training if empty."),
    ),
    help="Stops trials that are worse than others at the same epoch. Not available with "
    f"{titles(info for info in ALGORITHMS.values() if info.has_rungs)}.",
    toggle="/search/pruner",
    initial={"kind": "median"},
)
SEARCH = Section(
    "search",
    "Search space",
    "adjustments",
    "The configurations to try, and the algorithm. Without a search one model is trained.",
    (
        Group(
            "Search hyperparameters",
            toggle="/search",
            initial=SEARCH_BEGINS,
            part="space",
            covers=tuple(
                f"/search/space/*:{kind.tag}/{name}"
                for kind in SPACE
                for name in (*SPACE_COVERS, *kind.covers)
            ),
        ),
        Group(
            "Algorithm and trials",
            (
                F(
                    "/search/algorithm",
                    "Algorithm",
                    options=tuple(Option(json.dumps(name), info.label) for name, info in ALGORITHMS.items()),
                ),
                F("/search/objective/metric", "Objective", "Measured on validation data.", kind="measure"),
                F(
                    "/search/objective/direction",
                    "Direction",
                    options=(
                        Option('"max"', "the higher the better"),
                        Option('"min"', "the lower the better"),
                    ),
                ),
                F("/search/max_trials", "Trials, at most"),
                F("/search/executions_per_trial", "Executions per trial", "Trainings from different seeds."),
                F(
                    "/search/max_minutes",
                    "Minutes, at most",
                    "For the trials, without the steps after them. Empty: no limit.",
                ),
                F(
                    "/search/evaluation/kind",
                    "Measured on",
                    options=(
                        Option('"holdout"', "the validation part"),
                        Option('"k_fold"', "each fold in turn"),
                    ),
                ),
                argument(
                    "/search/evaluation/kind",
                    "folds",
                    "Folds",
                    "Of training and validation rows; each execution trains once a fold.",
                ),
                F("/search/parallel_trials", "Trials at once", "Empty: all free slots."),
                F("/search/max_consecutive_failures", "Give up after", "Failed trials in a row."),
                F(
                    "/search/duplicates",
                    "A repeated configuration",
                    options=(
                        Option('"replace"', "is replaced by a new one"),
                        Option('"answer"', "gets the earlier scores"),
                        Option('"train"', "is trained again"),
                    ),
                ),
                F(
                    "/search/warm_start",
                    "Learn from job",
                    "An earlier search of this project with the same objective; for "
                    f"{titles(info for info in ALGORITHMS.values() if info.learns_from_earlier)}.",
                    kind="search",
                ),
                F("/search/seed", "Seed"),
            ),
            within="/search",
            first=5,
        ),
        Group(
            "Several objectives",
            help=f"For {titles(info for info in ALGORITHMS.values() if info.several_objectives)}: "
            "the best trials are those that no other trial dominates.",
            part="objectives",
            within="/search",
            covers=tuple(field.spec for field in OBJECTIVES),
        ),
        Group(
            "Options of the algorithm",
            arguments("/search/algorithm"),
            help=f"For {titles(info for info in ALGORITHMS.values() if info.options is not None)}.",
            toggle="/search/options",
        ),
        PRUNING,
    ),
    ("/search",),
)

AFTER = Section(
    "afterwards",
    "Afterwards",
    "git-merge",
    "The jobs that follow the search or the training.",
    (
        Group(
            "Retrain the best",
            (
                F("/after/retrain/top", "Best trials"),
                F(
                    "/after/retrain/epochs_factor",
                    "Factor",
                    "Trains for int(best epoch × factor) epochs; 1.2 adds one from the fifth epoch on.",
                ),
                F(
                    "/after/retrain/monitor",
                    "Choose the epoch by",
                    "Empty: the search's objective. Early stopping follows it unless it watches another.",
                    kind="measure",
                ),
                F("/after/retrain/patience", "Patience", "For finding the best epoch."),
                F("/after/retrain/epochs_cap", "Epochs, at most"),
                F("/after/retrain/include_validation", "Train on training and validation rows together"),
            ),
            toggle="/after/retrain",
            initial={"top": 1, "epochs_factor": 1.2, "include_validation": True},
        ),
        Group(
            "Pool them into an ensemble",
            (F("/after/ensemble/method", "Method"),),
            help="Weights are found by Nelder–Mead on validation predictions.",
            toggle="/after/ensemble",
            initial={"method": "weighted"},
        ),
        Group(
            "Quantize",
            (
                F(
                    "/after/quantize/mode",
                    "To",
                    options=tuple(
                        Option(json.dumps(name), entry.label) for name, entry in QUANTIZATIONS.items()
                    ),
                ),
                *arguments("/after/quantize/mode"),
            ),
            help="Compared with the original on the same test rows.",
            toggle="/after/quantize",
            initial={"mode": DEFAULT_QUANTIZATION.name},
        ),
        Group(
            "Register versions",
            (
                F("/after/register/model", "Model", "A new name or an existing model.", listed="models"),
                F("/after/register/what", "What"),
            ),
            toggle="/after/register",
            initial={"model": "", "what": ["best"]},
        ),
    ),
    ("/after",),
)
