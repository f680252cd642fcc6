"""Declares the description of a model template, which the form, the plan, the engine and the docs read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.contracts.base import Frozen
from jobs.contracts.profile import DataKind, Profile
from jobs.contracts.templates.layers import Layer


@dataclass(frozen=True)
class TemplateInfo:
    """One model template.

    Attributes:
        name: the value of `model.template`.
        label: the name for users.
        help: its purpose in a few words.
        arguments: all arguments with types, bounds and defaults; titles and descriptions label the fields of
            the form.
        builder: the engine function, as `module:function`; imported when a model is built.
        data_kinds: the kinds of data that it accepts.
        shaping: arguments that affect which variables exist, or their shapes.
        ranges: a range to search for each argument, as a hyperparameter without its name.
        searched: arguments that a new experiment searches.
        shown: arguments that the spec of a new experiment contains, in this order.
        suits: whether to suggest it for given data; the first that suits is suggested.
        layers: returns the hidden layers without building them. None: the variables are known only after a
            model is built, so the plan has no memory estimate, and the worker checks the layout.
        width: an argument that may be larger than requested if the additional units stay 0; see
            `width_padding`.
        traced: arguments that are read by layers made with `Site.dropout`, and `head_penalty`. Trials that
            differ only in these share a compiled program.
        head_penalty: the argument with the L2 penalty on the kernel of the output layer.
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
    suits: Callable[[Profile], bool] = lambda _: True
    layers: Callable[[Any, Profile], Iterable[Layer]] | None = None
    width: str = ""
    traced: frozenset[str] = frozenset()
    head_penalty: str = ""

    def takes(self, profile: Profile) -> bool:
        """Return whether models of this template can be built for these data."""
        return profile.kind in self.data_kinds
