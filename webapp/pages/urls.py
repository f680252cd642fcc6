"""Collects the URL patterns from all page modules."""

from webapp.pages import demo, docs, home, site_search, styleguide
from webapp.pages.audit import audit
from webapp.pages.code import code, code_version, comparison, editing, settings
from webapp.pages.data import (
    credentials,
    dataset_roles,
    dataset_split,
    dataset_upload,
    dataset_version,
    datasets,
)
from webapp.pages.experiments import (
    experiment_columns,
    experiment_form,
    experiment_page,
    experiments,
    find_model,
    mesh_estimates,
    precision,
    scripts,
)
from webapp.pages.experiments.mesh_design import designer
from webapp.pages.people import account, departures, invitations, people, project_choice, projects, tokens
from webapp.pages.registry import endpoints, gates, promotions, registration, registry
from webapp.pages.runs import (
    job_comparison,
    job_orders,
    jobs,
    kind_submission,
    queue,
    reservations,
    run_again,
    workers,
)
from webapp.pages.search import answer, ensemble_start, search_changes, trial_starts, trials
from webapp.pages.storage import deletions, storage

urlpatterns = [
    *home.urls,
    *account.urls,
    *site_search.urls,
    *docs.urls,
    *styleguide.urls,
    *projects.urls,
    *project_choice.urls,
    *credentials.urls,
    *experiments.urls,
    *experiment_page.urls,
    *experiment_form.urls,
    *find_model.urls,
    *mesh_estimates.urls,
    *precision.urls,
    *scripts.urls,
    *experiment_columns.urls,
    *designer.urls,
    # Before jobs, whose address `jobs/<id>/<word>` matches theirs too.
    *deletions.urls,
    *trials.urls,
    *trial_starts.urls,
    *ensemble_start.urls,
    *search_changes.urls,
    *answer.urls,
    *registration.urls,
    *kind_submission.urls,
    *demo.urls,
    *job_orders.urls,
    *run_again.urls,
    *jobs.urls,
    *job_comparison.urls,
    *queue.urls,
    *registry.urls,
    *gates.urls,
    *promotions.urls,
    *endpoints.urls,
    # Before data sets, whose address `datasets/<slug>` matches `datasets/new` too.
    *dataset_upload.urls,
    *datasets.urls,
    *dataset_version.urls,
    *dataset_roles.urls,
    *dataset_split.urls,
    # Before versions, whose address `code/<digest>` matches `code/new` too.
    *code.urls,
    *code_version.urls,
    *editing.urls,
    *comparison.urls,
    *settings.urls,
    *storage.urls,
    *workers.urls,
    *reservations.urls,
    *people.urls,
    *invitations.urls,
    *departures.urls,
    *tokens.urls,
    *audit.urls,
]
