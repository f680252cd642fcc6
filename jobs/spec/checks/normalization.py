"""Checks that the normalization of rows for own code has an effect, and the right one."""

from collections.abc import Iterator, Sequence

from jobs.spec.checks.dry_build import BuiltModel
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.code_model import CodeModel

POINTER = "/model/normalize"


def problems(spec: ExperimentSpec, profile: Profile, built: BuiltModel | None) -> Iterator[Problem]:
    """Yield why the rows of own code cannot be normalized.

    Args:
        spec: the experiment.
        profile: of its data.
        built: the findings of a dry build; None before one.
    """
    if not isinstance(spec.model, CodeModel) or not spec.model.normalize or roles_differ(spec, profile):
        return
    rows = encoded(spec, profile)
    if rows.blocks and all(block.kind != "number" for block in rows.blocks):
        yield Problem(POINTER, "has no effect, since no column is encoded as a number; leave it out")
    elif built is not None and (why := why_no_indices(built.index_layers, rows)):
        yield Problem(POINTER, why)


def why_no_indices(layers: Sequence[str], profile: Profile) -> str:
    """Return why layers cannot take values of normalized rows as indices; empty if they can, or if none does.

    Args:
        layers: that take values of the rows as indices.
        profile: of the rows as the model gets them.
    """
    # Encoded columns of indices and words are not normalized.
    if not layers or profile.embedded:
        return ""
    return (
        f"the layer {layers[0]} takes values of the rows as indices, and a normalized number is none; leave "
        "it out, or let data.preprocessing encode columns as indices"
    )
