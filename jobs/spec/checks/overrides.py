"""Checks that each precision override matches a layer of some model that an experiment may build."""

from collections.abc import Collection, Iterator
from contextlib import suppress

from jobs.spec.checks import patterns
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.base_version import BaseVersion
from jobs.spec.plan.largest import extreme_shapes, with_values
from jobs.spec.plan.variables import layer_names
from jobs.spec.policies import OUTPUT_LAYERS
from jobs.spec.problems import Problem
from jobs.spec.sections.precision import PrecisionSpec

MOST_NAMES = 20
"""How many layers a message lists."""


def problems(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """Yield each override that matches no layer, whatever values a search tries.

    Args:
        spec: the experiment.
        profile: the data's, as they were uploaded.
    """
    # Listing the layers of every searched value takes time, and most specs have no overrides.
    if not spec.precision.overrides or spec.model.info.layers is None or roles_differ(spec, profile):
        return
    names: set[str] = set()
    for values in extreme_shapes(spec):
        with suppress(ValueError):  # reported by `data.value_problems`
            tried = with_values(spec, values)
            names |= layer_names(tried.model, encoded(tried, profile))
    yield from _unmatched(spec.precision, names)


def problems_of_version(precision: PrecisionSpec, base: BaseVersion) -> Iterator[Problem]:
    """Yield each override that matches no layer of a version, and none of a new head."""
    if base.layers:
        names = {layer.path.rpartition("/")[2] for layer in base.layers}
        yield from _unmatched(precision, names | set(OUTPUT_LAYERS))


def _unmatched(precision: PrecisionSpec, layers: Collection[str]) -> Iterator[Problem]:
    for i, override in enumerate(precision.overrides):
        if not any(_is_found(override.match, name) for name in layers):
            names = sorted(layers)
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            yield Problem(
                f"/precision/overrides/{i}/match",
                f"no layer has {override.match!r} in its name, so this override changes nothing; use a part "
                f"of a name, or leave it out; the layers are {', '.join(names[:MOST_NAMES])}{more}",
            )


def _is_found(pattern: str, name: str) -> bool:
    # `settings` reports a pattern that is refused.
    return patterns.refusal(pattern) is not None or patterns.found_in(pattern, name)
