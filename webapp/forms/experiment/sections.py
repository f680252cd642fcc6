"""The steps of the form, in order. Each field is named once, here."""

from typing import Any

from webapp.forms.experiment.description import Field, Group, Option, Section
from webapp.forms.experiment.rows import LAYOUT, OVERRIDES, SPACE, SPACE_COVERS

F = Field

EXEMPT: dict[str, str] = {
    "/version": "always 1",
    "/model/kind": "templates are the only kind so far",
    "/fit/optimizer_args": "free names and values: written in the JSON pane",
    "/resources/hosts": "always 1 until jobs run over several hosts",
    "/after/ensemble/weights": "Nelder–Mead is the only method so far",
}
"""Fields of the spec without an input, and why."""

DATA = Section(
    "data",
    "Data",
    "database",
    "Which rows to learn from, and how they are divided.",
    (
        Group(
            "Data set",
            (
                F("/data/dataset", "Data set", kind="dataset"),
                F("/data/dataset_version", "Version", "The newest ready one if left open.", kind="version"),
            ),
        ),
        Group(
            "Split",
            (
                F("/data/split/validation", "Validation part", "Chooses between trials and stops training."),
                F("/data/split/test", "Test part", "Looked at once, after every choice is made."),
                F("/data/split/seed", "Seed"),
                F("/data/split/stratify", "Keep class proportions in every part"),
            ),
            part="split",
        ),
        Group(
            "Split along a column",
            (
                F(
                    "/data/split/group",
                    "Keep together",
                    "Rows with equal values stay in one part.",
                    kind="column",
                ),
                F("/data/split/column", "Named parts", "It says train, validation or test.", kind="column"),
                F("/data/split/time", "Over time", "The oldest rows train, the newest test.", kind="column"),
            ),
            help="Choose at most one.",
        ),
        Group(
            "Other roles than the data set's own",
            (
                F("/data/target", "Target", kind="column"),
                F("/data/task", "Task"),
                F(
                    "/data/features",
                    "Features",
                    "Column names, separated by commas; all others if empty.",
                    wide=True,
                ),
            ),
        ),
    ),
    ("/data", "/name"),
)

MODEL = Section(
    "model",
    "Model",
    "brain",
    "A template and its arguments. What the search space names below is overruled by each trial.",
    (
        Group("Template", (F("/model/template", "Template", kind="template"),), part="template"),
        Group(
            "Arguments",
            (
                F("/model/args/filters", "Filters", "Of each convolution.", only=("cnn",)),
                F("/model/args/kernel", "Kernel size", only=("cnn",)),
                F("/model/args/layers", "Layers", only=("mlp", "cnn")),
                F("/model/args/units", "Units", "Of each dense layer.", only=("mlp", "cnn")),
                F("/model/args/dropout", "Dropout", only=("mlp", "cnn")),
                F("/model/args/activation", "Activation", only=("mlp", "cnn")),
                F("/model/args/batch_norm", "Batch normalization", only=("mlp",)),
                F("/model/args/l2", "L2 penalty", only=("linear",)),
            ),
        ),
    ),
    ("/model",),
)

TRAINING = Section(
    "training",
    "Training",
    "trending-down",
    "How one model is fitted.",
    (
        Group(
            "Fit",
            (
                F("/fit/epochs", "Epochs", "Far above need, with early stopping."),
                F("/fit/batch_size", "Batch size"),
                F("/fit/optimizer", "Optimizer"),
                F("/fit/learning_rate", "Learning rate"),
                F("/fit/seed", "Seed"),
                F("/fit/shuffle", "Shuffle rows each epoch"),
            ),
        ),
        Group(
            "Early stopping",
            (
                F("/fit/early_stopping/monitor", "Watch", kind="measure"),
                F("/fit/early_stopping/patience", "Patience", "Epochs without improvement."),
                F("/fit/early_stopping/min_delta", "Least improvement"),
                F("/fit/early_stopping/restore_best", "Keep the best epoch's weights"),
            ),
            toggle="/fit/early_stopping",
            initial={"monitor": "val_loss", "patience": 5},
        ),
        Group(
            "Loss and metrics",
            (
                F("/fit/loss", "Loss", "From the task if left open.", kind="loss"),
                F("/fit/class_weights", "Class weights"),
                F("/fit/metrics", "Metrics", "From the task if none is chosen.", kind="metrics", wide=True),
            ),
        ),
        Group(
            "Steps",
            (
                F("/fit/clipnorm", "Clip gradients to norm"),
                F(
                    "/fit/steps_per_execution",
                    "Steps per execution",
                    "Several steps in one compiled call: faster on small models, coarser to stop.",
                ),
            ),
        ),
    ),
    ("/fit",),
)

SEARCH_BEGINS: dict[str, Any] = {
    "algorithm": "random",
    "max_trials": 12,
    "executions_per_trial": 2,
    "space": [{"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"}],
}
SEARCH = Section(
    "search",
    "Search space",
    "adjustments",
    "What is tried, and how the best is found. Without a search one model is trained.",
    (
        Group(
            "Search hyperparameters",
            (
                F(
                    "/search/algorithm",
                    "Algorithm",
                    options=(
                        Option('"random"', "random"),
                        Option('"grid"', "grid"),
                        Option('"bayesian"', "Bayesian optimization"),
                    ),
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
                F("/search/parallel_trials", "Trials at once", "All free slots if left open."),
                F("/search/max_consecutive_failures", "Give up after", "Failed trials in a row."),
                F("/search/seed", "Seed"),
            ),
            toggle="/search",
            initial=SEARCH_BEGINS,
        ),
        Group(
            "Hyperparameters",
            part="space",
            covers=tuple(
                f"/search/space/*:{kind.tag}/{name}"
                for kind in SPACE
                for name in (*SPACE_COVERS, *(field.pointer for field in kind.fields))
            ),
        ),
    ),
    ("/search",),
)

MESH = Section(
    "mesh",
    "Mesh",
    "topology-star-3",
    "Several devices: divide the batch over one axis, the weights over another.",
    (
        Group(
            "Use several devices",
            (
                F(
                    "/mesh/devices",
                    "Devices",
                    options=tuple(Option(f'"{d}"', d.upper()) for d in ("cpu", "gpu", "tpu")),
                ),
                F(
                    "/mesh/simulate",
                    "Simulated CPU devices",
                    "As many as the mesh has; empty for real devices.",
                ),
                F("/mesh/memory_fraction", "Memory fraction", "Of each GPU."),
                F("/mesh/preallocate", "Take the memory at start"),
            ),
            toggle="/mesh",
            initial={
                "devices": "cpu",
                "shape": [2],
                "axis_names": ["data"],
                "batch_axis": "data",
                "simulate": 2,
            },
        ),
        Group("Axes", part="axes", covers=("/mesh/shape", "/mesh/axis_names", "/mesh/batch_axis")),
        Group("Layout", part="layout", covers=tuple(field.spec for field in LAYOUT)),
    ),
    ("/mesh",),
)

PRECISION = Section(
    "precision",
    "Precision",
    "ruler",
    "Which number formats the layers compute and keep their weights in.",
    (
        Group(
            "Policy",
            (
                F("/precision/policy", "Policy"),
                F("/precision/loss_scale", "Loss scale", "Dynamic, none, or a number.", kind="scale"),
                F("/precision/matmul", "Matrix products"),
            ),
        ),
        Group("Overrides", part="overrides", covers=tuple(field.spec for field in OVERRIDES)),
        Group("Advisor", part="advisor"),
    ),
    ("/precision",),
)

AFTER = Section(
    "afterwards",
    "Afterwards",
    "git-merge",
    "What follows by itself once the search (or the training) is over.",
    (
        Group(
            "Train the best for real",
            (
                F("/after/retrain/top", "Best trials"),
                F("/after/retrain/epochs_factor", "Factor", "Trains for int(best epoch × factor) epochs."),
                F("/after/retrain/patience", "Patience", "While the best epoch is looked for."),
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
            (F("/after/quantize/mode", "To"),),
            help="Compared with the original on the same test rows.",
            toggle="/after/quantize",
            initial={"mode": "int8"},
        ),
        Group(
            "Register versions",
            (F("/after/register/model", "Model"), F("/after/register/what", "What")),
            toggle="/after/register",
            initial={"model": "", "what": ["best"]},
        ),
    ),
    ("/after",),
)

RESOURCES = Section(
    "resources",
    "Resources",
    "server-2",
    "What each trial takes from the workers.",
    (
        Group(
            "Placement",
            (
                F("/resources/pool", "Pool"),
                F("/resources/slots", "Slots per trial"),
                F("/resources/priority", "Priority", "Higher goes first."),
                F("/resources/max_restarts", "Restarts", "After a lost worker or runner."),
                F("/resources/memory_gib", "Memory cap (GiB)", "A run that outgrows it is ended."),
            ),
        ),
    ),
    ("/resources",),
)

REVIEW = Section(
    "review",
    "Review",
    "list-check",
    "What will run. Nothing has started yet.",
    (Group("Plan", part="review"),),
    ("",),
)

SECTIONS = (DATA, MODEL, TRAINING, SEARCH, MESH, PRECISION, AFTER, RESOURCES, REVIEW)


def covered() -> list[str]:
    """List the pointers of the spec that the form edits."""
    groups = [group for section in SECTIONS for group in section.groups]
    fields = [field.spec or field.pointer for group in groups for field in group.fields]
    return fields + [pointer for group in groups for pointer in group.covers]
