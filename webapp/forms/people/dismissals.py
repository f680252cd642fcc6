"""The hidden fields of the button that dismisses a thing on Home."""

from django import forms

from jobs.queries.dismissals import NeedKind
from webapp.forms.reading import ReadForm


class DismissForm(ReadForm):
    """A thing under "Needs you", in the state in which the page showed it."""

    kind = forms.TypedChoiceField(choices=[(kind, kind) for kind in NeedKind], coerce=NeedKind)
    row = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    state = forms.CharField(max_length=100)
