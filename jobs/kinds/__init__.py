"""Registers the job kinds in a table, and orders an experiment's steps.

A kind is one folder here: `payload.py` defines its payload, result and task, `facts.py` its properties,
`actions.py` its behaviour, and `rows.py` the conditions that find its jobs, where other modules look for
them. Nothing here imports an `actions.py`: `jobs.apps` does.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Union

from pydantic import Field, TypeAdapter

from jobs.kinds.base import Facts, Payload
from jobs.kinds.chosen_ensemble.facts import CHOSEN_ENSEMBLE
from jobs.kinds.code_data.facts import CODE_DATA
from jobs.kinds.dry_build.facts import DRY_BUILD
from jobs.kinds.dry_run.facts import DRY_RUN
from jobs.kinds.ensemble.facts import ENSEMBLE
from jobs.kinds.external_search.facts import EXTERNAL_SEARCH
from jobs.kinds.gate.facts import GATE
from jobs.kinds.install.facts import INSTALL
from jobs.kinds.mesh_estimate.facts import MESH_ESTIMATE
from jobs.kinds.profile.facts import PROFILE
from jobs.kinds.quantize.facts import QUANTIZE
from jobs.kinds.register.facts import REGISTER
from jobs.kinds.search.facts import SEARCH
from jobs.kinds.split_overview.facts import SPLIT_OVERVIEW
from jobs.kinds.train.facts import TRAIN
from jobs.messages.task import Task
from jobs.spec.experiment import ExperimentSpec

KINDS: dict[str, Facts] = {
    facts.name: facts
    for facts in (
        SEARCH,
        EXTERNAL_SEARCH,
        TRAIN,
        ENSEMBLE,
        CHOSEN_ENSEMBLE,
        QUANTIZE,
        REGISTER,
        GATE,
        PROFILE,
        SPLIT_OVERVIEW,
        DRY_BUILD,
        MESH_ESTIMATE,
        DRY_RUN,
        INSTALL,
        CODE_DATA,
    )
}


def facts_by_payload(kinds: Iterable[Facts]) -> dict[type[Payload], Facts]:
    """Map each payload class to the facts of its kind.

    Raises:
        ValueError: two kinds have the same class, so it could not name the kind of a new job.
    """
    by_class: dict[type[Payload], Facts] = {}
    for facts in kinds:
        other = by_class.setdefault(facts.payload, facts)
        if other is not facts:
            raise ValueError(f"{other.name} and {facts.name} have the payload class {facts.payload.__name__}")
    return by_class


_BY_PAYLOAD = facts_by_payload(KINDS.values())

PIPELINE: tuple[str, ...] = ("search", "train", "ensemble", "quantize", "register")
"""The kinds of an experiment's steps, in the order in which they run."""

# Built at run time from the table, so no type checker can follow it: tasks are typed by their base class.
_ANY_TASK: Any = Annotated[
    Union[tuple(facts.task for facts in KINDS.values() if facts.task)],  # noqa: UP007
    Field(discriminator="kind"),
]
TASK: TypeAdapter[Task] = TypeAdapter(_ANY_TASK)


def kinds_that(condition: Callable[[Facts], bool]) -> tuple[str, ...]:
    """Return the names of the kinds that meet a condition."""
    return tuple(name for name, facts in KINDS.items() if condition(facts))


def kinds_with_public_name(public_name: str) -> tuple[str, ...]:
    """Return the kinds with this name in REST and in addresses."""
    return kinds_that(lambda facts: facts.public_name == public_name)


def public_names() -> tuple[str, ...]:
    """Return all names of kinds in REST and in addresses, each once."""
    return tuple(dict.fromkeys(facts.public_name for facts in KINDS.values()))


def titles_by_public_name() -> dict[str, str]:
    """Return the titles that pages show for the public names."""
    return {facts.public_name: facts.title for facts in KINDS.values()}


def facts_of_payload(payload: Payload) -> Facts:
    """Return the facts of the kind with this payload class."""
    return _BY_PAYLOAD[type(payload)]


def payload_of(kind: str, body: dict[str, Any]) -> Payload:
    """Return a job's payload, typed as its kind defines."""
    return KINDS[kind].payload.model_validate(body)


def steps_from(kind: str) -> tuple[str, ...]:
    """Return the steps in `PIPELINE` from a root's kind on; without the search if the root is no step."""
    if kind in PIPELINE:
        return PIPELINE[PIPELINE.index(kind) :]
    return tuple(step for step in PIPELINE if not KINDS[step].has_trials)


def planned_steps(spec: ExperimentSpec) -> list[str]:
    """List the kind of every job that an experiment creates, in step order."""
    return [kind for kind in PIPELINE for _ in range(KINDS[kind].planned(spec))]
