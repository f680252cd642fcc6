"""The form's steps, in order, and how much they cover in the spec. Each field is named once."""

from webapp.forms.experiments.experiment.description import Group, Section
from webapp.forms.experiments.experiment.learning import DATA, MODEL
from webapp.forms.experiments.experiment.running import MESH, PRECISION, RESOURCES
from webapp.forms.experiments.experiment.searching import AFTER, SEARCH
from webapp.forms.experiments.experiment.training import TRAINING

EXEMPT: dict[str, str] = {
    "/version": "always 1",
    "/search/start_with": "configurations; in the JSON beside the form, which keeps them",
    "/model/kind": "follows from the template",
    "/model/name": "the field of the template sets it for a hypermodel",
    "/model/hyperparameters": "of own code; a fixed row of the search space has the same effect",
    "/model/env": "of scripts, which have a form of their own",
    "/resources/hosts": "always 1 until jobs run over several hosts",
    "/after/ensemble/weights": "Nelder–Mead is the only method so far",
}
"""Fields of the spec without an input, and why."""

REVIEW = Section(
    "review",
    "Review",
    "list-check",
    "What will run. Nothing has started yet.",
    (Group("Plan", part="review"),),
    ("",),
)

SECTIONS = (DATA, MODEL, TRAINING, SEARCH, MESH, PRECISION, AFTER, RESOURCES, REVIEW)


def covered_pointers() -> list[str]:
    """List the spec pointers that the form edits."""
    groups = [group for section in SECTIONS for group in section.groups]
    fields = [field.spec or field.pointer for group in groups for field in group.fields]
    return fields + [pointer for group in groups for pointer in group.covers]


def field_labels() -> dict[str, str]:
    """Return the labels of the fields and the groups, by their pointers into a request's body."""
    groups = [group for section in SECTIONS for group in section.groups]
    labels = {f"/spec{group.toggle}": group.title for group in groups if group.toggle}
    for group in groups:
        for field in group.fields:
            # Several groups that have a switch have a field of the same label, such as Patience.
            label = f"{group.title}, {field.label.lower()}" if group.toggle else field.label
            labels.setdefault(f"/spec{field.spec or field.pointer}", label)
    return labels


def group_titles() -> frozenset[str]:
    """Return the titles of groups that precede the labels of their fields, each with a comma."""
    return frozenset(group.title for section in SECTIONS for group in section.groups if group.toggle)
