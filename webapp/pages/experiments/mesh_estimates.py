"""Shows the needs of a training step on a mesh, as a part of pages that have a spec."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import mesh_estimates as actions
from jobs.answers.experiments.mesh_estimates import MeshEstimateOut
from jobs.errors import BadInput
from jobs.queries.experiments import estimate_requests
from jobs.queries.experiments import mesh_estimates as queries
from jobs.spec.data.file_limits import GIB
from jobs.spec.plan.compiled_step import CompiledStep
from jobs.spec.problems import Problem
from jobs.states import FINAL
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.pages.shortcuts import Request, form_page, render_page
from webapp.template_context import Context
from webapp.whole_numbers import read_whole

MAX_GIB = 10_000.0


class MemoryPart(NamedTuple):
    """A part of a device's memory."""

    label: str
    bytes: int
    help: str


@dataclass(frozen=True)
class EstimateSection(Context):
    """Variables for `experiments/designer/estimate.html`.

    Attributes:
        estimate_project: the project's slug.
        estimate: None before one is requested.
        estimate_is_open: whether a worker has not ended it yet.
        estimate_parts: the memory of one device, by purpose.
        estimate_total: the sum.
        estimate_device: the memory of one device in bytes; None if it is not known.
        estimate_gib: the same, as it was typed.
        estimate_problems: why it was refused.
    """

    estimate_project: str
    estimate: MeshEstimateOut | None = None
    estimate_is_open: bool = False
    estimate_parts: Sequence[MemoryPart] = ()
    estimate_total: int = 0
    estimate_device: int | None = None
    estimate_gib: str = ""
    estimate_problems: Sequence[Problem] = ()


@form_page
def mesh_estimate(request: Request, project: str) -> HttpResponse:
    """Request the estimate of the spec in the form, or show one that was requested, as a part of a page."""
    if request.method != "POST":
        return _show(request, _requested(request, project))
    home, gib = access.get_project(request.user, project, Action.WRITE), request.POST.get("device_gib", "")
    try:
        # Pages insert the part whatever it contains, so a refusal is shown in it.
        size = _read_gib(gib)
        body = read_json(request.POST.get("spec", "").encode())
        wanted = estimate_requests.read_request(home, body, by=request.user, device_bytes=size)
        actions.request_estimate(wanted, by=request.user, again=request.POST.get("again") == "1")
        section = _section(project, queries.estimate_out(wanted), gib, wanted.payload.device_bytes)
    except (BadInput, Malformed) as error:
        of_fields = error.problems if isinstance(error, BadInput) else ()
        problems = of_fields or (Problem("/spec", error.message),)
        section = EstimateSection(project, estimate_gib=gib, estimate_problems=problems)
    return _show(request, section)


def _requested(request: Request, project: str) -> EstimateSection:
    """Return the estimate whose job is in the address; without one, only the button."""
    home = access.get_project(request.user, project)
    number = read_whole(request.GET.get("job", ""))
    if number is None:
        return EstimateSection(project)
    job = queries.find_estimate(access.visible_jobs(request.user).filter(project=home), number)
    size = queries.device_bytes_of(job)
    gib = f"{size / GIB:g}" if size is not None else ""
    return _section(project, queries.estimate_of_job(job), gib, size)


def _section(project: str, estimate: MeshEstimateOut, gib: str, size: int | None) -> EstimateSection:
    step = estimate.step
    return EstimateSection(
        estimate_project=project,
        estimate=estimate,
        estimate_is_open=estimate.state not in FINAL,
        estimate_parts=_parts_of(step) if step is not None else (),
        estimate_total=step.total if step is not None else 0,
        estimate_device=size,
        estimate_gib=gib,
    )


def _parts_of(step: CompiledStep) -> list[MemoryPart]:
    factor = f"{step.temporaries_factor:g}"
    return [
        MemoryPart("Weights", step.weights, "exact"),
        MemoryPart("Gradients", step.gradients, "exact"),
        MemoryPart("Optimizer slots", step.optimizer, "exact"),
        MemoryPart("Batch and metrics", step.batch, "exact"),
        MemoryPart(
            "Activations and other temporaries",
            step.activations,
            f"an estimate: {factor} × the compiler's figure, without the gradients",
        ),
    ]


def _read_gib(text: str) -> int | None:
    """Return a device's memory in bytes; None if the field is empty.

    Raises:
        BadInput: it is no positive number.
    """
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= MAX_GIB:
        message = f"give the memory of one device as a number of GiB up to {MAX_GIB:,.0f}, not {text!r}"
        raise BadInput(message, [Problem("/device_gib", message)])
    return round(number * GIB)


def _show(request: Request, section: EstimateSection) -> HttpResponse:
    return render_page(request, "experiments/designer/estimate.html", section)


urls = [path("p/<slug:project>/mesh-estimate", mesh_estimate, name="mesh-estimate")]
