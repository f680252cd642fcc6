"""Declares scripts as models: a script or module in a code version, with its arguments and variables."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.exports import STORED
from jobs.spec.sections.model_base import ModelBase
from jobs.spec.space.hyperparameters import Value
from jobs.spec.templates.info import OPTIMIZER_FIELDS, NoArguments, ProgramEngines, TemplateInfo

ENTRY = "train.py"
"""An example script, in messages."""
MODEL_FILE = STORED.file_name()
"""The file in the output folder that is registered."""
MODULE = "-m "
"""The prefix before an entry that is a module."""
MAX_ARGUMENTS = 100
MAX_VARIABLES = 50
MAX_TEXT = 4_000
MAX_VALUES = 1_000
"""Values of one argument."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_MODULE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_NO_OTHER_VALUE = frozenset(
    {"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "SHELL", "USER", "LOGNAME", "PWD", "VIRTUAL_ENV", "IFS"}
)
_NO_OTHER_PREFIX = ("TRAINYARD_", "PYTHON", "LD_", "CUDA_VISIBLE", "NVIDIA_VISIBLE")
_SECRETS = (
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
)


_STEPS = "a script trains by itself"
_OWN = "only the script knows how it trains; pass it as an argument"
SCRIPT = TemplateInfo(
    name="scripts",
    label="Script",
    help="a program of your own, with arguments",
    arguments=NoArguments,
    program=ProgramEngines(
        training="workers.engine.tasks.script.train", trials="workers.engine.tasks.script.trials"
    ),
    by_gradient=False,
    needs_data=False,
    own_names=True,
    fit_prefix=None,
    no_rungs="a script cannot continue from the end of a rung",
    unused={
        "/mesh/layout": "a script places its own arrays: it gets the devices and the axes in TRAINYARD_MESH",
        "/precision": _STEPS,
        "/search/evaluation": "the script chooses the rows on which it measures",
        "/data/preprocessing": "a script gets the columns as they were uploaded",
        "/data/texts": "a script gets the columns as they were uploaded",
        "/data/window": "a script gets the rows as they were uploaded",
        **dict.fromkeys(
            (
                *OPTIMIZER_FIELDS,
                "/fit/batch_size",
                "/fit/loss",
                "/fit/metrics",
                "/fit/class_weights",
                "/fit/augmentation",
                "/fit/shuffle",
                "/fit/early_stopping",
                "/fit/steps_per_execution",
            ),
            _OWN,
        ),
    },
    refused={
        "/after/retrain": "a retraining chooses the epoch of a Keras model, and a script trains by itself",
        "/after/ensemble": "only models that Trainyard trains are combined",
        "/after/quantize": "only models that Trainyard trains are quantized",
    },
)
"""The abilities of scripts. They name their arguments and metrics themselves."""


def _path_or_module(entry: str) -> str:
    """Check that an entry is a path with .py in a code version, or `-m` with a module."""
    if entry.startswith(MODULE):
        if not _MODULE_NAME.fullmatch(entry.removeprefix(MODULE)):
            raise ValueError(f"{entry!r} names no module; write -m and its name, such as -m package.train")
        return entry
    parts = entry.split("/")
    if not entry.endswith(".py") or any(part in ("", ".", "..") for part in parts) or "\\" in entry:
        raise ValueError(f"{entry!r} is no script; give the path of a .py file of the code, such as {ENTRY}")
    return entry


def _scalar(value: Any) -> Any:
    if not isinstance(value, bool | int | float | str):
        raise ValueError("an argument is a number, a text, true or false")
    return value


def _text(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a text of a script cannot have the character NUL")
    return value


def _arguments(args: dict[str, Any]) -> dict[str, Any]:
    for name in args:
        if (reason := name_refusal(name)) is not None:
            raise ValueError(reason)
    return args


def _variables(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if (reason := _variable_refusal(name)) is not None:
            raise ValueError(reason)
    return env


def name_refusal(name: str) -> str | None:
    """Return why a script cannot have an argument with this name, or None if it can."""
    if _NAME.fullmatch(name):
        return None
    if name.startswith("-"):
        return f"{name!r}: leave out the dashes, they are added"
    return f"{name!r} is no name of an argument; it has letters, digits, _ - . and begins with a letter"


def _variable_refusal(name: str) -> str | None:
    upper = name.upper()
    if not _VARIABLE.fullmatch(name):
        return f"{name!r} is no name of a variable; it has letters, digits and _, and begins with a letter"
    if upper in _NO_OTHER_VALUE or upper.startswith(_NO_OTHER_PREFIX):
        return f"{name} is set by Trainyard and cannot be changed"
    if any(word in upper for word in _SECRETS):
        return f"{name} seems to be a secret: everyone who sees the experiment could read it; leave it out"
    return None


ScriptScalar = Annotated[
    bool | int | float | Annotated[str, Field(max_length=MAX_TEXT)],
    BeforeValidator(_scalar),
    AfterValidator(_text),
]
ScriptArgument = Annotated[
    Annotated[ScriptScalar, Tag("of a value")]
    | Annotated[list[ScriptScalar], Field(max_length=MAX_VALUES), Tag("of a list")],
    Discriminator(lambda value: "of a list" if isinstance(value, list) else "of a value"),
]
"""An argument's value, or the values of one that takes several, such as `nargs="+"`."""


class ScriptModel(ModelBase):
    """A script or module of a version of code, run as a program of its own.

    Attributes:
        digest: of the version of code.
        entry: the path of a `.py` file of the version, or `-m` and a module.
        args: passed as the script's parser wants them; hyperparameters replace or add arguments.
        env: environment variables. Everyone who sees the experiment can read them.
    """

    named_by = "entry"

    kind: Literal["script"]
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="of the version of code")
    entry: Annotated[str, AfterValidator(_path_or_module)] = Field(
        max_length=300, description="the path of a .py file of the version, or -m and a module"
    )
    args: Annotated[dict[str, ScriptArgument], AfterValidator(_arguments)] = Field(
        default_factory=dict,
        max_length=MAX_ARGUMENTS,
        description=(
            "each is passed as the script declares it; others as --name value, where true passes the name "
            "alone and false leaves it out, which is refused if the script has declarations that were not "
            "found"
        ),
    )
    env: Annotated[
        dict[str, Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_text)]],
        AfterValidator(_variables),
    ] = Field(
        default_factory=dict,
        max_length=MAX_VARIABLES,
        exclude_if=lambda variables: not variables,
        description="environment variables; no secrets, since everyone who sees the experiment reads them",
    )

    @property
    def info(self) -> TemplateInfo:
        """Return what scripts can and cannot."""
        return SCRIPT

    @property
    def code_digest(self) -> str | None:
        """Return the code version's digest."""
        return self.digest

    def refusal_of_name(self, name: str) -> str | None:
        """Return why the script cannot have an argument with this name, or None if it can."""
        return name_refusal(name)

    def refusal(self, profile: Profile) -> str | None:
        """Return why the script cannot use these data: never, since only the script knows."""
        del profile
        return None

    def resolved(self) -> Frozen:
        """Return the arguments that Trainyard knows: none."""
        return NoArguments()

    def with_arguments(self, values: Mapping[str, Value]) -> "ScriptModel":
        """Return the script with further arguments, or with other values for its arguments.

        Raises:
            pydantic.ValidationError: a name or a value is none that a script can get.
        """
        return ScriptModel.model_validate({**dict(self), "args": {**self.args, **values}})
