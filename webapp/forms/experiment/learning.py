"""The steps of the form that say what is learned: data and model."""

from webapp.forms.experiment.description import Field, Group, Section

F = Field

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
