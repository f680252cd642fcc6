"""Lists the model templates. Each has a module here and a function in the engine.

`docs/tutorial-new-template.md` adds one.
"""

from importlib import import_module

from jobs.spec.templates.info import TemplateInfo

NAMES = (
    "mlp",
    "cnn",
    "resnet",
    "text_bow",
    "text_transformer",
    "sequence",
    "trees",
    "linear",
)
"""In the order in which the form lists them; the first that suits the data is suggested."""

HYPERMODELS = ("hyper_xception", "hyper_resnet")
"""The modules of KerasTuner's hypermodels, which are listed last: they are never suggested."""

TEMPLATES: dict[str, TemplateInfo] = {
    info.name: info for info in (import_module(f"{__name__}.{name}").INFO for name in NAMES + HYPERMODELS)
}
