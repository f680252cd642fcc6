"""The fields of requests about shared devices, which are tried like the forms in `form_effects.py`."""

from datetime import timedelta
from typing import Any

from jobs import models
from tests.web.form_effects import RESERVED, TOMORROW, Page, rows_of


def _body(**fields: Any) -> dict[str, dict[str, Any]]:
    """Return a change of each field by itself."""
    return {name: {name: value} for name, value in fields.items()}


def _moment(hours: int) -> str:
    return (TOMORROW + timedelta(hours=hours)).isoformat()


REQUESTS: dict[str, Page] = {
    "ReservationIn": Page(
        "/api/v1/reservations",
        {"user": "member", "begins": _moment(0), "ends": _moment(3)},
        {
            **_body(
                pool="large",
                worker="box-default",
                slots=2,
                begins=_moment(1),
                ends=_moment(4),
                user="trainer",
                note="demo",
            ),
            "project": {"user": "", "project": "yard"},
        },
        RESERVED,
        method="post",
    ),
    "PoolChange": Page(
        "/api/v1/queue/pools/default",
        {"preemption": False},
        _body(preemption=True),
        rows_of(models.PoolSettings, "pool", "preemption"),
        method="patch",
    ),
    "UserChange": Page(
        "/api/v1/users/member",
        {},
        _body(max_slots=3, admin=True, active=False),
        rows_of(models.User, "max_slots", "is_superuser", "is_active"),
        method="patch",
    ),
    "QuotasChange": Page(
        "/api/v1/projects/yard/quotas",
        {},
        _body(slots=7, bytes=7_000, jobs=7, uploads=7, events=7),
        rows_of(models.Project, "max_slots", "max_bytes", "max_jobs", "max_uploads", "max_events"),
        method="patch",
    ),
    "JobChange": Page(
        "/api/v1/jobs/{job}",
        {},
        _body(priority=70, pool="large", labels={"gpu": "h200"}, max_minutes=5),
        rows_of(models.Job, "priority", "pool", "labels", "max_minutes"),
        "owner",
        method="patch",
    ),
}
"""By the name of the body's class."""
