"""The steps for the mesh, precision and resources."""

from webapp.forms.experiments.experiment.description import Field, Group, Section
from webapp.forms.experiments.experiment.rows import LAYOUT, OVERRIDES, POLICIES

F = Field

MESH = Section(
    "mesh",
    "Mesh",
    "topology-star-3",
    "Several devices: one axis splits the batch, another the weights.",
    (
        Group(
            "Use several devices",
            (
                F(
                    "/mesh/devices",
                    "Devices",
                    "TPU is offered where a worker reports one.",
                    kind="devices",
                ),
                F(
                    "/mesh/simulate",
                    "Simulated CPU devices",
                    "As many as the mesh has. Empty: real devices.",
                ),
                F("/mesh/memory_fraction", "Memory fraction", "The largest share of each GPU's memory."),
                F("/mesh/preallocate", "Allocate the memory at start", "Of GPUs only."),
            ),
            toggle="/mesh",
            part="device_names",
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
    "The number formats in which layers compute and store their weights.",
    (
        Group(
            "Policy",
            (
                F("/precision/policy", "Policy", options=POLICIES),
                F(
                    "/precision/loss_scale",
                    "Loss scale",
                    "Of layers in float16: dynamic, none, or a number.",
                    kind="scale",
                ),
                F("/precision/matmul", "Matrix products"),
            ),
        ),
        Group("Overrides", part="overrides", covers=tuple(field.spec for field in OVERRIDES)),
        Group("Policies", part="advisor"),
    ),
    ("/precision",),
)

RESOURCES = Section(
    "resources",
    "Resources",
    "server-2",
    "The resources of each trial.",
    (
        Group(
            "Placement",
            (
                F("/resources/pool", "Pool", listed="pools"),
                F(
                    "/resources/labels",
                    "Labels",
                    "Only workers with all of them run it, such as gpu=h200, site=berlin.",
                    kind="labels",
                    listed="labels",
                ),
                F("/resources/slots", "Slots per trial"),
                F("/resources/priority", "Priority", "Higher priorities run first."),
                F("/resources/max_restarts", "Restarts", "After a lost worker or runner."),
                F(
                    "/resources/max_minutes",
                    "Minutes of a training, at most",
                    "It then writes a checkpoint and stops. Waiting and pauses do not count.",
                ),
                F("/resources/memory_gib", "Memory cap (GiB)", "A run that exceeds it is stopped."),
            ),
        ),
        Group(
            "Ask for GPUs",
            (
                F(
                    "/resources/gpu/name",
                    "Model or name",
                    "Words of the model, such as H200 or RTX 4090, or one device, such as gpu:1. Empty: any.",
                    listed="gpus",
                ),
                F("/resources/gpu/memory_gb", "Memory of each (GB)", "At least. Empty: any."),
                F(
                    "/resources/gpu/count",
                    "GPUs per trial",
                    "Each needs a slot. Empty: as many as the mesh has, or one without a mesh.",
                ),
            ),
            toggle="/resources/gpu",
            part="gpus",
        ),
    ),
    ("/resources",),
)
