"""Forms for the installation's settings, and for a project's network."""

from django import forms

from jobs.messages.sandbox import LEVELS, Level
from jobs.models import Project
from webapp.forms.reading import ReadForm

CHOICES = [(level.value, level.value) for level in LEVELS]


class SandboxForm(ReadForm):
    sandbox_minimum = forms.ChoiceField(
        choices=CHOICES,
        label="Weakest sandbox",
        help_text="Jobs with code of users wait while no worker offers this one or a stronger one. Runs that "
        "have begun continue.",
    )
    seen = forms.ChoiceField(choices=CHOICES, widget=forms.HiddenInput)

    @classmethod
    def of(cls, minimum: Level) -> "SandboxForm":
        """Return the form with the present setting."""
        return cls(initial={"sandbox_minimum": minimum.value, "seen": minimum.value})


class NetworkForm(ReadForm):
    network = forms.BooleanField(
        required=False,
        label="Code of users may connect to other hosts",
        help_text="At the ports 80 and 443, where the machine can restrict them. Without it, runs have no "
        "network.",
    )
    seen = forms.TypedChoiceField(
        choices=[("1", "1"), ("0", "0")], coerce=lambda text: text == "1", widget=forms.HiddenInput
    )

    @classmethod
    def of(cls, project: Project) -> "NetworkForm":
        """Return the form with a project's present setting."""
        return cls(initial={"network": project.network, "seen": str(int(project.network))})
