"""Declares user code: its limits, the findings about it, and the reader process's messages."""

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from jobs.spec.base import Frozen

MAX_FILES = 500
"""How many files a version may have."""
MAX_FILE_BYTES = 2 * 2**20
MAX_BYTES = 20 * 2**20
"""How many bytes a version's files may have together."""
MAX_PATH = 300
MAX_DEPTH = 20
"""Folders around a file."""
MAX_NAME = 100
MAX_PARSED_BYTES = 2**20
"""Larger Python files are kept, but nothing is looked for in them."""
MAX_FOUND = 200
"""How many entries, problems and requirements are kept for a version, each."""
MAX_ARGUMENTS = 100
"""How many arguments are kept for an entry."""
MAX_ARGUMENTS_OF_ALL = 1_000
"""How many arguments are kept for all entries in a version."""
MAX_TEXT = 200
"""How many characters are kept of a name, a default value or a message."""
MAX_SHOWN_BYTES = 512 * 2**10
"""Larger files are not shown in the browser, and not compared line by line."""
MAX_SHOWN_LINES = 5_000
"""How many lines a file's page shows."""
MAX_RUNS = 50_000
"""How many runs of styled text a page shows: each is an HTML element."""
MAX_ANSWER_BYTES = 16 * 2**20
"""How many bytes the reader's answer may have."""
MAX_FORM_BYTES = MAX_BYTES + 64 * 2**10
"""How many bytes a form with code may have: its fields and its files' headers need some too."""

type EntryKind = Literal[
    "build_model",
    "hypermodel",
    "load_data",
    "preprocess",
    "layer",
    "metric",
    "loss",
    "model",
    "object",
    "script",
]

ArgumentAction = Literal[
    "store", "true", "false", "boolean", "constant", "count", "append", "extend", "command"
]
"""How a script's argument gets its value.

`true`, `false`: its name alone sets this value. `boolean`: it has one name for each. `command`: it chooses
one of the script's commands.
"""

type ArgumentLibrary = Literal["argparse", "click", "typer", "absl", "fire", "transformers"]
"""A library that reads the arguments of scripts."""

type GivenAs = Literal["--name value", "--name=value", "name=value", "value"]
"""The form in which a script reads arguments whose declarations are not known.

`value`: it reads those without dashes by their places itself, not by a parser.
"""


class CodeArgument(Frozen):
    """An argument of a function, of a constructor, or of a script."""

    name: str = Field(description="As it is written; `--name` for an option of a script.")
    default: str | None = Field(None, description="As it is written in the code; null if it is required.")
    annotation: str | None = Field(None, description="Its type, as it is written in the code.")
    help: str | None = Field(None, description="Of an argument of a script.")
    choices: str | None = Field(None, description="Of an argument of a script, as written in the code.")
    any_case: bool = Field(False, description="Whether large and small letters are equal in its choices.")
    action: ArgumentAction = Field("store", description="How an option of a script gets its value.")
    flags: list[str] = Field([], description="All names of an option of a script, with their dashes.")
    off: str | None = Field(None, description="The option that makes it false, such as `--no-cache`.")
    dest: str | None = Field(None, description="The name under which a script reads it, if it has another.")
    nargs: str | None = Field(None, description="How many values it takes: `?`, `*`, `+` or a number.")
    const: str | None = Field(
        None,
        description="Its value if its name is given alone; of a list the values to which others are added.",
    )
    words: list[str] = Field([], description="The texts that its type reads as true and as false.")
    separator: str | None = Field(None, description="Between the values of a list that is given as one text.")
    command: str | None = Field(None, description="The command of a script to which it belongs.")
    library: ArgumentLibrary = Field("argparse", description="The library with which a script declares it.")

    @property
    def takes_several(self) -> bool:
        """Return whether a list is its value."""
        is_list = self.nargs not in (None, "?") or self.separator is not None
        return is_list or self.action in ("append", "extend")


def default_dest(names: Sequence[str]) -> str:
    """Return the name under which a script reads an argument that gives no other, as argparse does.

    Args:
        names: with their dashes; the first long one counts, else the first.
    """
    first = next((name for name in names if name.startswith("--")), names[0])
    return first.lstrip("-").replace("-", "_")


class CodeEntry(Frozen):
    """A part of the code that has a meaning for Trainyard, found without executing the code."""

    kind: EntryKind
    name: str
    path: str
    line: int
    arguments: list[CodeArgument] = []
    more_arguments: int = Field(0, description="Number of arguments that are not listed.")
    methods: list[str] = Field([], description="Of a HyperModel: those of build and fit that it defines.")
    registered: str | None = Field(
        None, description="The name under which Keras saves a class or a function; null if not registered."
    )
    note: str = Field("", description="What prevents its use; empty if nothing does.")
    given_as: GivenAs = Field(
        "--name value", description="How a script gets arguments whose declarations were not found."
    )
    ignores_others: bool = Field(
        False, description="Whether a script passes over arguments that it does not declare."
    )


class CodeProblem(Frozen):
    """A place that cannot be read as Python, or a file that cannot be read at all."""

    path: str
    line: int | None = None
    column: int | None = Field(None, description="Counted from 1.")
    message: str


class CodeNotice(Frozen):
    """A place in the code, or a file, that a person should know of before the code is used."""

    path: str
    line: int | None = None
    message: str


class CallbackOfCode(Frozen):
    """Early stopping as code asks for it, with the names that a spec has."""

    monitor: str | None = None
    patience: int = 0
    min_delta: float = 0.0
    restore_best: bool = False


class CodeSearch(Frozen):
    """The search that a pasted file describes by a tuner of KerasTuner and its call of `search`.

    Without a tuner it is a training, which the call of a model's `fit` describes.
    """

    path: str
    line: int
    tuner: str = Field(description="The class of the tuner; empty for a training.")
    entry: str | None = Field(None, description="The function or class that builds the model.")
    metric: str | None = Field(None, description="Of the objective; of the first of several.")
    direction: Literal["min", "max"] | None = None
    max_trials: int | None = None
    executions: int | None = None
    seed: int | None = None
    max_epochs: int | None = Field(None, description="Of Hyperband.")
    factor: int | None = Field(None, description="Of Hyperband.")
    iterations: int | None = Field(None, description="Of Hyperband.")
    epochs: int | None = None
    batch_size: int | None = None
    validation_split: float | None = None
    early_stopping: CallbackOfCode | None = None
    max_failures: int | None = Field(None, description="Failed trials in a row after which it ends.")
    shuffle: bool | None = None
    space: list[dict[str, JsonValue]] = Field(
        [], description="Rows that narrow the space which the code declares."
    )
    hyperparameters: dict[str, bool | int | float | str] = Field(
        {}, description="Values of hyperparameters that are not searched."
    )
    left_out: list[str] = Field(
        [], description="Arguments without a field in a spec, or without a constant value."
    )


class CodePackages(Frozen):
    """The packages that the code asks for."""

    path: str = Field(description="`requirements.txt` or `pyproject.toml`.")
    requirements: list[str]
    python: str | None = Field(None, description="The versions of Python that it asks for.")

    @property
    def digest(self) -> str:
        """Compute one digest for the requirements and the Python versions."""
        identity = {"python": self.python, "requirements": self.requirements}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


class CodeFound(Frozen):
    """The findings about a version, made without executing it."""

    python: str = Field("", description="The version of Python whose grammar was used.")
    entries: list[CodeEntry] = []
    problems: list[CodeProblem] = []
    notices: list[CodeNotice] = []
    runs: list[CodeNotice] = Field([], description="Statements that do more than define, as in a notebook.")
    search: CodeSearch | None = Field(None, description="The last search that such statements describe.")
    searches: list[CodeSearch] = Field(
        [], description="All searches and trainings that such statements describe, in their order."
    )
    packages: CodePackages | None = None
    left_out: int = Field(0, description="Files that were not kept: hidden ones, compiled ones and caches.")

    @property
    def described(self) -> list[CodeSearch]:
        """Return all described searches and trainings; findings of earlier releases have one alone."""
        return self.searches or [search for search in (self.search,) if search is not None]

    def search_for(self, entry: str) -> CodeSearch | None:
        """Return the last search or training that is described for an entry; None without one."""
        known = [search for search in self.described if search.entry == entry]
        unknown = [search for search in self.described if search.entry is None]
        chosen = known or unknown
        return chosen[-1] if chosen else None

    def summary(self) -> dict[str, object]:
        """Return the counts and errors that version lists show."""
        return {
            "entries": [entry.name for entry in self.entries],
            "problems": len(self.problems),
            "packages": self.packages is not None,
        }


class SentFile(Frozen):
    """A file that was sent: where its bytes are, and the path that its sender gave it."""

    place: str
    path: str


class ReadRequest(Frozen):
    """Unpack and read files. The kept ones are written to the folder `into`."""

    kind: Literal["read"] = "read"
    files: list[SentFile]
    into: str
    definitions_only: bool = Field(False, description="Whether statements that run on import are left out.")


class HighlightRequest(Frozen):
    """Divide a file into runs of equally styled text."""

    kind: Literal["highlight"] = "highlight"
    place: str
    path: str


class ComparedFile(Frozen):
    """One file in two versions: where its bytes are; null where it does not exist."""

    path: str
    old: str | None
    new: str | None


class CompareRequest(Frozen):
    """Compare two versions' files. Equal files are not sent."""

    kind: Literal["compare"] = "compare"
    files: list[ComparedFile]


type ReaderRequest = Annotated[ReadRequest | HighlightRequest | CompareRequest, Field(discriminator="kind")]
REQUEST: TypeAdapter[ReaderRequest] = TypeAdapter(ReaderRequest)


class KeptFile(Frozen):
    """A file in a version: `number` is its name in the request's folder."""

    path: Annotated[str, Field(max_length=MAX_PATH)]
    number: int
    bytes: int
    lines: int | None = Field(description="Null if it is not text.")


class Reading(Frozen):
    """The answer to a `ReadRequest`."""

    files: list[KeptFile]
    found: CodeFound


class Highlighted(Frozen):
    """The answer to a `HighlightRequest`: runs by line, each with a CSS class and its text."""

    lines: list[list[tuple[Annotated[str, Field(pattern=r"^[a-z0-9]{0,4}$")], str]]]
    is_cut: bool = Field(False, description="Whether there are more lines.")
    note: str = Field("", description="Why some lines have no styles; else empty.")


class DifferenceLine(Frozen):
    """A line of a difference."""

    change: Literal["same", "added", "removed"]
    old: int | None = Field(description="Its number in the old version.")
    new: int | None = Field(description="Its number in the new version.")
    text: str
    marks: list[tuple[int, int]] = Field(
        [], description="First and last position, exclusive, of the characters that differ in a line."
    )


class FileDifference(Frozen):
    """The differences of one file. Each part of `hunks` is a list of lines that follow each other."""

    path: str
    change: Literal["added", "removed", "changed"]
    added: int = Field(0, description="Number of lines.")
    removed: int = Field(0, description="Number of lines.")
    hunks: list[list[DifferenceLine]] = []
    note: str = Field("", description="Why the lines are not shown, or not matched; else empty.")


class Comparison(Frozen):
    """The answer to a `CompareRequest`."""

    files: list[FileDifference]


class ReaderRefusal(Frozen):
    """The reader's answer to files that it refuses."""

    refusal: str
