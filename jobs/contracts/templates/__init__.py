"""The table of model templates. A template is one module here and one function of the engine.

`docs/tutorial-new-template.md` adds one.
"""

from jobs.contracts.templates import cnn, linear, mlp
from jobs.contracts.templates.info import TemplateInfo

TEMPLATES: dict[str, TemplateInfo] = {
    info.name: info
    for info in (
        mlp.INFO,
        cnn.INFO,
        linear.INFO,
    )
}
"""In the order of the form; the first that suits the data is proposed."""
