"""The form for a new project makes its slug from its name."""

import pytest

from webapp.forms.people.people import ProjectForm


@pytest.mark.parametrize(
    ("fields", "slug"),
    [
        ({"name": "Räder & 2 Züge"}, "rader-2-zuge"),
        ({"name": "x" * 62 + " y"}, "x" * 62),
        ({"name": "Trains", "slug": "mine"}, "mine"),
        ({"name": "列車"}, None),
        ({"name": "Trains", "slug": "Not a slug"}, None),
    ],
)
def test_a_slug_is_made_from_the_name_unless_it_is_written(fields: dict[str, str], slug: str | None) -> None:
    form = ProjectForm(fields)
    assert form.is_valid() == (slug is not None)
    assert slug is None or form.cleaned_data["slug"] == slug
    assert slug is not None or list(form.errors) == ["slug"]
