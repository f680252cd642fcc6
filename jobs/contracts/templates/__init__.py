"""The table of model templates. A template is one module here and one function of the engine.

`docs/tutorial-new-template.md` adds one.
"""

from importlib import import_module

from jobs.contracts.templates.info import TemplateInfo

NAMES = (
    "mlp",
    "cnn",
    "linear",
)
"""In the order of the form; the first that suits the data is proposed."""

TEMPLATES: dict[str, TemplateInfo] = {name: import_module(f"{__name__}.{name}").INFO for name in NAMES}
