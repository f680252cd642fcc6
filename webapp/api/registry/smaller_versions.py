"""Operations that make a smaller version of a registered one: quantization and casts to 16 bits."""

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.registry.smaller_versions import make_smaller
from jobs.answers.runs.jobs import JobOut
from jobs.queries.runs import jobs as job_queries
from jobs.spec.exports import DEFAULT_QUANTIZATION
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import In, Number

router = Router()


class QuantizeIn(In):
    """How a version is made smaller."""

    mode: str = Field(DEFAULT_QUANTIZATION.name, max_length=40, description="As `after.quantize.mode`.")


class CastIn(In):
    """The format in which the layers keep their weights and compute."""

    dtype: str = Field(max_length=40, description="float16 or bfloat16.")


@router.post("/models/{name}/versions/{number}/quantize", response={202: JobOut})
@idempotent
def quantize_version(request: HttpRequest, name: str, number: Number, body: QuantizeIn) -> Status[JobOut]:
    """Queue a job that makes a smaller model of a version and adds it as a version, with a report of both."""
    version = access.get_version(actor(request), name, number, Action.WRITE)
    return Status(202, job_queries.job_out(make_smaller(version, body.mode, "mode", by=actor(request))))


@router.post("/models/{name}/versions/{number}/cast", response={202: JobOut})
@idempotent
def cast_version(request: HttpRequest, name: str, number: Number, body: CastIn) -> Status[JobOut]:
    """Queue a job that casts a version to 16 bits and adds it as a version, with a report of both."""
    version = access.get_version(actor(request), name, number, Action.WRITE)
    return Status(202, job_queries.job_out(make_smaller(version, body.dtype, "dtype", by=actor(request))))
