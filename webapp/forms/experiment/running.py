"""The steps of the form that say on what it runs: mesh, precision, resources."""

from webapp.forms.experiment.description import Field, Group, Option, Section
from webapp.forms.experiment.rows import LAYOUT, OVERRIDES

F = Field

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
