"""The steps of the form that say what is learned: data and model."""

import json

from jobs.contracts.templates import TEMPLATES
from webapp.forms.experiment.description import Field, Group, Option, Section, arguments

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
        Group(
            "Template",
            (
                F(
                    "/model/template",
                    "Template",
                    kind="template",
                    options=tuple(Option(json.dumps(name), info.label) for name, info in TEMPLATES.items()),
                ),
            ),
            part="template",
        ),
        Group("Arguments", arguments("/model/template")),
    ),
    ("/model",),
)
