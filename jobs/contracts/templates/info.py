"""Describes a model template: the one source for form, checks, plan, engine and docs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.contracts.base import Frozen
from jobs.contracts.profile import DataKind, Profile
from jobs.contracts.templates.layers import Layer


def _always(_: Profile) -> bool:
    return True


@dataclass(frozen=True)
class TemplateInfo:
    """One model template.

    Attributes:
        name: as a spec names it.
        label: for people.
        help: a few words on what it is for.
        arguments: every argument with its type, bounds and default; a field's title and description label it
            in the form.
        builder: the engine function, as `module:function`; nothing is imported before a model is built.
        data_kinds: the kinds of data that it takes.
        shaping: arguments that change which variables there are, or their shapes.
        ranges: a sensible range to search for each argument, as a hyperparameter without its name.
        searched: arguments that a new experiment searches.
        shown: arguments that a new experiment writes into its spec, in this order.
        suits: whether to propose it for some data; of several the first in the table is proposed.
        layers: lists the hidden layers without building them. None: the variables are known only once a model
            was built, so the plan cannot tell its memory, and a layout is checked on the worker.
        width: an argument that may be larger than asked while the surplus stays 0; see `width_padding`.
        traced: arguments that layers made by `Site.dropout` read, and `head_penalty`. Trials that differ in
            these alone share a compiled program.
        head_penalty: the argument that is the L2 penalty on the kernel of the output layer.
    """

    name: str
    label: str
    help: str
    arguments: type[Frozen]
    builder: str
    data_kinds: tuple[DataKind, ...] = ("vector", "image")
    shaping: frozenset[str] = frozenset()
    ranges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    suits: Callable[[Profile], bool] = _always
    layers: Callable[[Any, Profile], Iterable[Layer]] | None = None
    width: str = ""
    traced: frozenset[str] = frozenset()
    head_penalty: str = ""

    def takes(self, profile: Profile) -> bool:
        """Say whether models of this template can be built on these data."""
        return profile.kind in self.data_kinds
