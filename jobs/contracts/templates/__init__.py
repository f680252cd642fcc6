"""Lists the model templates. Each has a module here and a function in the engine.

`docs/tutorial-new-template.md` adds one.
"""

from importlib import import_module

from jobs.contracts.templates.info import TemplateInfo

NAMES = (
    "mlp",
    "cnn",
    "linear",
)
"""In the order in which the form lists them; the first that suits the data is suggested."""

TEMPLATES: dict[str, TemplateInfo] = {name: import_module(f"{__name__}.{name}").INFO for name in NAMES}
