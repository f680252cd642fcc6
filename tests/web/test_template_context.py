"""Typed template variables: several contexts are one mapping, which has each name once."""

from dataclasses import dataclass

import pytest

from webapp.template_context import Context, template_variables


@dataclass(frozen=True)
class Head(Context):
    """A page head."""

    title: str
    tab: str = "overview"


@dataclass(frozen=True)
class Body(Context):
    """The part below the head."""

    rows: tuple[int, ...]


@dataclass(frozen=True)
class OtherTab(Context):
    """A part with a field that the head has too."""

    tab: str


def test_the_fields_of_all_contexts_are_the_variables() -> None:
    assert template_variables(Head("Jobs"), Body((1, 2))) == {
        "title": "Jobs",
        "tab": "overview",
        "rows": (1, 2),
    }


def test_a_name_in_two_contexts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"OtherTab\.tab is also in another context"):
        template_variables(Head("Jobs"), OtherTab("charts"))
