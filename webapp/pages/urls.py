"""The pages, subject by subject: a module has `urls`, a list of paths whose names are the pages' names."""

from importlib import import_module
from importlib.util import find_spec

from django.urls import URLPattern, URLResolver

SUBJECTS = (
    "home",
    "account",
    "search",
    "docs",
    "styleguide",
    "projects",
    "experiments",
    "experiment_form",
    "trials",  # these two before jobs, whose address of an order takes any word
    "search_changes",
    "registration",
    "jobs",
    "compare",
    "queue",
    "models",
    "promotions",
    "endpoints",
    "datasets",
    "code",
    "workers",
    "people",
    "tokens",
    "webhooks",
    "audit",
)


def _urls() -> list[URLPattern | URLResolver]:
    found: list[URLPattern | URLResolver] = []
    for subject in SUBJECTS:
        if find_spec(f"webapp.pages.{subject}"):
            found += import_module(f"webapp.pages.{subject}").urls
    return found


urlpatterns = _urls()
