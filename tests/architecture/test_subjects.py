"""One subject has one name and one wing in every layer: actions, queries, answers, API, pages and forms."""

from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOMAIN = ("jobs/actions", "jobs/queries", "jobs/answers")
INTERFACES = ("webapp/api", "webapp/pages", "webapp/forms")
WINGS = ("people", "audit", "data", "code", "experiments", "search", "runs", "registry", "storage")

EXCEPTIONS = {
    "webapp/api/data/dataset_forms": "reads the multipart forms of data sets",
    "webapp/api/auth": "authentication of all requests",
    "webapp/api/etags": "HTTP headers",
    "webapp/api/media": "HTTP media types",
    "webapp/api/openapi": "completes the OpenAPI document",
    "webapp/api/problems": "error responses",
    "webapp/api/shapes": "types of all request bodies",
    "webapp/api/site": "builds the API",
    "webapp/api/throttle": "limits all requests",
    "webapp/forms/experiments/described_search": "begins the form of an experiment with a search in code",
    "webapp/pages/people/account": "a person's own page; its reads and writes are those of people and tokens",
    "webapp/api/people/account": "the caller; its reads are those of people",
    "webapp/pages/data/dataset_columns": "the part of the page of a version with its columns",
    "webapp/pages/data/dataset_lookup": "finds the data set of the address of such a page",
    "webapp/pages/data/dataset_split": "the part of the page of a version that compares the parts of a split",
    "webapp/pages/data/dataset_upload": "the form of uploads, too large for the page of data sets",
    "webapp/pages/data/dataset_version": "the page of one version of a data set",
    "webapp/pages/data/thumbnails": "the images on that page",
    "webapp/pages/data/version_origin": "the part of that page with the origin of a version",
    "webapp/pages/data/version_settings": "the fields on that page with which a file is read again",
    "webapp/pages/data/upload_form": "renders the form of uploads",
    "webapp/pages/code/code_lookup": "finds the version of code of an address",
    "webapp/pages/code/code_version": "the page of one version of code",
    "webapp/pages/code/comparison": "the differences of two versions of code",
    "webapp/pages/code/editing": "the form that edits a file of a version of code",
    "webapp/pages/demo": "only in a demo; its reads and writes are those of webapp.demo",
    "webapp/pages/docs": "shows the files of docs/",
    "webapp/pages/documents": "reads the files of docs/",
    "webapp/pages/errors": "error pages",
    "webapp/pages/matching": "compares searches with names of pages and headings of documents",
    "webapp/pages/people/project_choice": "the switcher of projects",
    "webapp/pages/page_names": "finds pages by their names",
    "webapp/pages/action_names": "finds what can be done with jobs, experiments and endpoints",
    "webapp/pages/form_encoding": "the encoding of all forms",
    "webapp/pages/experiments/experiment_columns": "the part of that form for the columns of a table",
    "webapp/pages/experiments/experiment_form": "the form of experiments, too large for their page",
    "webapp/pages/experiments/experiment_form_page": "renders that form",
    "webapp/pages/experiments/experiment_lookup": "finds the experiment of an address",
    "webapp/pages/experiments/experiment_page": "the page of one experiment",
    "webapp/pages/experiments/opened_settings": "the line on that form about the job that it was opened from",
    "webapp/pages/runs/comparison_rows": "the rows of the page that compares jobs",
    "webapp/pages/runs/job_candidates": "the verdict on the page of a job",
    "webapp/pages/runs/job_spec": "the settings on the page of a job",
    "webapp/pages/runs/job_trail": "the breadcrumb of the page of a job",
    "webapp/pages/runs/run_again": "asks before a job or an experiment runs again",
    "webapp/pages/runs/run_settings": "the settings of a run on the pages of its job, trial and version",
    "webapp/pages/search/ensemble_start": "asks before an ensemble is created from chosen trials",
    "webapp/pages/search/trial_starts": "asks before a trial is trained again",
    "webapp/pages/sorting": "the sortable columns of lists",
    "webapp/pages/starts": "asks before any work starts",
    "webapp/pages/runs/job_commands": "the commands that the page of a job offers",
    "webapp/pages/runs/job_orders": "asks before commands to several jobs",
    "webapp/pages/runs/job_head": "the head of the page of a job",
    "webapp/pages/runs/job_steps": "the line of steps on the page of a job",
    "webapp/pages/runs/job_overview": "the overview tab of the page of a job",
    "webapp/pages/runs/job_tabs": "the tabs of the page of a job",
    "webapp/pages/data/pictures": "images in pages",
    "webapp/pages/experiments/target_doubts": "the reminder of open findings in forms of experiments",
    "webapp/pages/experiments/scripts": "the form of experiments with scripts",
    "webapp/forms/experiments/script": "the fields of that form, in a folder",
    "webapp/pages/shortcuts": "helpers of all pages",
    "webapp/pages/styleguide": "shows the components of pages",
    "webapp/pages/registry/use_examples": "the examples on a tab of the page of a version",
    "webapp/pages/registry/tryout": "a tab of the page of a version",
    "webapp/pages/registry/tryout_answer": "the answer of the prediction server on that tab",
    "webapp/pages/registry/version_head": "the head of the page of a version",
    "webapp/pages/registry/version_overview": "the overview tab of the page of a version",
    "webapp/pages/registry/version_tabs": "the other tabs of the page of a version",
    "webapp/pages/search/verdict": "the words for the lead of the best trial",
    "webapp/pages/registry/tryout_columns": "the fields of that tab for the columns of a table",
    "webapp/pages/registry/tryout_windows": "the text of that tab for the rows of a window",
    "webapp/forms/data/dialects": "a part of the forms of uploads",
    "webapp/forms/data/split": "the fields of a split, outside of the form of experiments",
    "webapp/forms/data/images": "the fields for the size of images",
    "webapp/pages/urls": "the table of pages",
    "webapp/forms/experiments/experiment": "the sections of the form of experiments, in a folder",
    "webapp/forms/reading": "helpers of all forms",
}
"""Modules without a subject of the domain, with the reason."""


def modules(folder: str) -> set[str]:
    """Return modules and packages of a layer by their paths in it: `data/datasets`, or `urls` at its top."""
    names = set()
    for place in ("", *(f"{wing}/" for wing in WINGS)):
        files = {path.stem for path in (ROOT / folder / place).glob("*.py")}
        packages = {path.parent.name for path in (ROOT / folder / place).glob("*/__init__.py")}
        if not place:
            packages -= set(WINGS)
        names |= {f"{place}{name}" for name in files | packages if not name.startswith("_")}
    return names


def subject(name: str) -> str:
    return name.rpartition("/")[2]


SUBJECTS = {subject(name) for folder in DOMAIN for name in modules(folder)}


def strangers(folder: str) -> set[str]:
    return {f"{folder}/{name}" for name in modules(folder) if subject(name) not in SUBJECTS}


@pytest.mark.parametrize("folder", INTERFACES)
def test_every_module_of_an_interface_is_named_after_a_subject_of_the_domain(folder: str) -> None:
    strange = strangers(folder) - EXCEPTIONS.keys()
    assert not strange, "name it like its actions, queries or answers, or add the reason to EXCEPTIONS"


def test_every_exception_is_still_one() -> None:
    assert EXCEPTIONS.keys() <= set().union(*map(strangers, INTERFACES))


def test_a_subject_is_in_the_same_wing_in_every_layer() -> None:
    wings: dict[str, set[str]] = defaultdict(set)
    for folder in (*DOMAIN, *INTERFACES):
        for name in modules(folder):
            if "/" in name:
                wings[subject(name)].add(name.partition("/")[0])
    assert not {name: places for name, places in wings.items() if len(places) > 1}
