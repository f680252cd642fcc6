from django import forms

from webapp.forms.reading import ReadForm

MAX_PRIORITY = 100


class ChangeForm(ReadForm):
    """Another place in the queue: what is left empty stays."""

    priority = forms.IntegerField(min_value=0, max_value=MAX_PRIORITY, required=False)
    pool = forms.RegexField(r"^[\w.-]{1,63}$", required=False, empty_value=None)
