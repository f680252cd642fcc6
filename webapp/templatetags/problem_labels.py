"""Names the field of a problem on pages, which have labels where the REST interface has JSON pointers."""

import re
from collections.abc import Mapping
from functools import cache

from django.utils.module_loading import import_string

from jobs.errors import BadInput, TrainyardError
from webapp.templatetags.words import SETTINGS, shown_message

LABELS = {
    "/url": "Address",
    "/max_bad_share": "Damaged rows",
    "/rows_without_target": "Leave out rows without a target",
}
"""The labels of fields whose names are other words, except those of the experiment form."""
NAMED = ("args", "env", "columns", "gap_words", "class_weights", "hyperparameters", "scores", "labels")
"""Parts of a body whose keys are names that users chose."""


@cache
def _labels() -> Mapping[str, str]:
    """Return all labels by pointer."""
    # The form is above this module, and is imported when the first message is shown.
    of_form: dict[str, str] = import_string("webapp.forms.experiments.experiment.sections.field_labels")()
    return LABELS | of_form


@cache
def _group_titles() -> frozenset[str]:
    titles: frozenset[str] = import_string("webapp.forms.experiments.experiment.sections.group_titles")()
    return titles


def label_of(pointer: str) -> str:
    """Return the label of the field at a pointer into a body; the words of the pointer if no page has one.

    >>> label_of("/file"), label_of("/columns/unit_price/type")
    ('File', 'Columns, unit_price, type')
    """
    place = pointer.removeprefix("/spec")
    return _labels().get(pointer) or _in_words(place or pointer)


def _in_words(pointer: str) -> str:
    words: list[str] = []
    above = ""
    for part in pointer.strip("/").split("/"):
        # A JSON pointer escapes slash and tilde.
        name = part.replace("~1", "/").replace("~0", "~")
        if above in NAMED:
            words.append(name)
        elif name.isdecimal():
            words.append(f"row {int(name) + 1}")
        else:
            words.append(name.replace("_", " "))
        above = part
    text = ", ".join(words)
    return text[:1].upper() + text[1:]


NAME = re.compile(r"(?<![\w'\"/.`(])[a-z]+(?:[._][a-z]+)+(?![\w'\"/`(=]|\.\w)")
"""A name that may be a field's in REST. Quoted names are values, such as columns and hyperparameters."""
SECTIONS_ALONE = ("/spec/search/", "/spec/resources/", "/spec/after/", "/spec/mesh/")
"""Sections whose fields are recognized without their section: code of users has no such names."""


def plain_message(text: str) -> str:
    """Return a problem's message with labels for the names that fields have in REST.

    >>> plain_message("use another seed (fit.seed)"), plain_message("column 'max_trials' is empty")
    ('use another seed', "column 'max_trials' is empty")
    """
    return NAME.sub(_in_label, SETTINGS.sub("", text))


def _in_label(found: re.Match[str]) -> str:
    label = _label_of_name(found[0])
    return f"“{label}”" if label else found[0]


def _label_of_name(name: str) -> str:
    """Return the label of the fields with this name; empty if there are none, or different ones."""
    end = "/" + name.replace(".", "/")
    known = _labels()
    pointers = [each for each in known if each.endswith(end)]
    if "." not in name:
        pointers = [each for each in pointers if each.startswith(SECTIONS_ALONE)]
    labels = {_without_group(known[each]) for each in pointers}
    return labels.pop() if len(labels) == 1 else ""


def _without_group(label: str) -> str:
    """Return a field's label without the title of its group; a label may have a comma of its own.

    >>> _without_group("Early stopping, patience"), _without_group("Trials, at most")
    ('patience', 'Trials, at most')
    """
    title, _, own = label.partition(", ")
    return own if own and title in _group_titles() else label


def message_of(error: TrainyardError) -> str:
    """Return a refusal's message for a page, with the label of the field if it is about one."""
    problems = [each for each in error.problems if each.pointer] if isinstance(error, BadInput) else []
    if len(problems) == 1 and problems[0].message not in error.message:
        return f"{label_of(problems[0].pointer)}: {plain_message(problems[0].message)}"
    text = error.message
    for problem in sorted(problems, key=lambda each: -len(each.pointer)):
        text = text.replace(f"{problem.pointer}: ", f"{label_of(problem.pointer)}: ")
    return shown_message(plain_message(text))
