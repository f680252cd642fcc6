"""The steps for the data and the model."""

import json

from jobs.spec.sections.code_model import CODE
from jobs.spec.sections.version_model import VERSION
from jobs.spec.templates import TEMPLATES
from webapp.forms.experiments.experiment.description import (
    Field,
    Group,
    Option,
    Section,
    arguments,
)

F = Field

DATA = Section(
    "data",
    "Data",
    "database",
    "The training data, and how its rows are split.",
    (
        Group(
            "Data set",
            (
                F("/data/dataset", "Data set", kind="dataset"),
                F("/data/dataset_version", "Version", "Empty: the newest ready version.", kind="version"),
            ),
            part="code_data",
        ),
        Group(
            "Split",
            (
                F("/data/split/validation", "Validation part", "Compares trials and stops training early."),
                F("/data/split/test", "Test part", "Evaluated once, after the search and training."),
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
                F("/data/split/column", "Named parts", "Contains train, validation or test.", kind="column"),
                F("/data/split/time", "Over time", "The oldest rows train, the newest test.", kind="column"),
                F(
                    "/data/split/use_roles",
                    "Follow the roles of the columns",
                    "Without a choice here, the column with the role split, time or group decides.",
                ),
            ),
            part="split_roles",
            help="Choose at most one.",
        ),
        Group(
            "Windows over time",
            (
                F("/data/window/rows", "Rows", "Of a window, which is the input of one prediction."),
                F(
                    "/data/window/horizon",
                    "Horizon",
                    "How many rows after the window's last one the target is. 0: in the last row.",
                ),
                F("/data/window/time", "Order", "Empty: the column with the role time.", kind="column"),
                F(
                    "/data/window/group",
                    "Windows for each",
                    "Such as a sensor or a shop. Empty: the column with the role group, or none.",
                    kind="column",
                ),
            ),
            help="Several rows of a table, in the order of time, are the input of one prediction.",
            toggle="/data/window",
            initial={"rows": 16, "horizon": 0},
        ),
        Group(
            "Other roles than the data set's own",
            (
                F("/data/target", "Target", kind="column"),
                F("/data/task", "Task"),
                F(
                    "/data/features",
                    "Features",
                    "Names, separated by commas; one with a comma in quotes. Empty: those of the data set.",
                    wide=True,
                ),
            ),
        ),
        Group(
            "Columns as numbers",
            (F("/data/texts", "Texts", "Without a choice below. Empty: as the template needs."),),
            help="Of tables. Without a choice, the proposal applies.",
            part="preprocessing",
            covers=("/data/preprocessing",),
        ),
    ),
    ("/data", "/name"),
)

MODEL = Section(
    "model",
    "Model",
    "brain",
    "A template and its arguments, a registered version, or own code. Each trial overrides the arguments in "
    "the search space.",
    (
        Group(
            "Template",
            (
                F(
                    "/model/template",
                    "Template",
                    kind="template",
                    options=tuple(
                        Option(json.dumps(info.name), info.label)
                        for info in (*TEMPLATES.values(), VERSION, CODE)
                    ),
                ),
            ),
            part="template",
        ),
        Group(
            "Version",
            help="Its weights are where training begins; its input and normalization stay as they are.",
            part="version",
            covers=("/model/model", "/model/number", "/model/alias"),
        ),
        Group(
            CODE.label,
            part="own_code",
            covers=("/model/digest", "/model/entry", "/model/normalize"),
            help="A version of code, and its function build_model or its HyperModel class.",
        ),
        Group("Arguments", arguments("/model/template")),
    ),
    ("/model",),
)
