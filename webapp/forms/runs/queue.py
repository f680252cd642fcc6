"""The form that changes a queued job's priority and pool."""

from django import forms

from jobs.spec.sections.resources import POOL
from webapp.forms.reading import ReadForm

MAX_PRIORITY = 100


class ChangeForm(ReadForm):
    """An empty field keeps its value."""

    priority = forms.IntegerField(min_value=0, max_value=MAX_PRIORITY, required=False)
    pool = forms.RegexField(POOL, required=False, empty_value=None)
