"""The form fields for each job kind."""

import pytest
from django import forms

from webapp.forms.runs.kind_submission import JsonField

DEEP = "[" * 100_000


def test_a_json_field_refuses_text_that_is_nested_too_deep() -> None:
    class Form(forms.Form):
        value = JsonField()

    form = Form({"value": DEEP})
    assert form.errors == {"value": ["This value is nested deeper than 64 levels."]}
    assert DEEP[:70] in str(form)
    with pytest.raises(forms.ValidationError, match="valid JSON"):
        JsonField().clean("[1")
    assert JsonField().clean("[[1]]") == [[1]]
