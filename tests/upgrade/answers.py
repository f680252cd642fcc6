"""Reads an installation over REST, and compares earlier answers with later ones."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2

Body = dict[str, Any]

VOLATILE = frozenset({"eta_seconds", "last_used", "replicas"})
"""Fields that depend on the time of the request, not on stored data."""
WHOLE = 200
"""The longest list that one request returns."""


class Reader:
    """Gets JSON from a yard's REST API as one person."""

    def __init__(self, web: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.Client(base_url=f"{web}/api/v1", headers=headers, timeout=60)

    def get(self, address: str) -> Body:
        """Return the JSON at an address, which must answer 200."""
        answer = self._http.get(address)
        assert answer.status_code == 200, f"{address}: {answer.status_code} {answer.text[:500]}"
        return dict(answer.json())

    def items(self, address: str) -> list[Body]:
        """Return a list's items, which fit on one page."""
        joint = "&" if "?" in address else "?"
        page = self.get(f"{address}{joint}limit={WHOLE}")
        assert page["next"] is None, f"{address} has more than {WHOLE} items"
        return list(page["items"])


def addresses(reader: Reader) -> Iterator[str]:
    """Yield the addresses of all stored data, except unfinished work."""
    jobs = {job["id"]: job for job in reader.items("/jobs")}
    for job in jobs.values():
        if job["finished"] is not None and jobs[job["parent"] or job["id"]]["finished"] is not None:
            yield from _of_job(reader, job)
    yield "/projects"
    yield from (f"/projects/{project['slug']}/members" for project in reader.items("/projects"))
    for dataset in reader.items("/datasets"):
        yield from _of_dataset(reader, dataset)
    for experiment in reader.items("/experiments"):
        if experiment["state"] in (None, "completed", "failed", "stopped"):
            yield from (f"/experiments/{experiment['id']}", f"/experiments/{experiment['id']}/revisions")
    yield from (f"/promotions/{promotion['id']}" for promotion in reader.items("/promotions"))
    for model in reader.items("/models"):
        yield from _of_model(reader, model["name"])


def unfinished(reader: Reader) -> Iterator[str]:
    """Yield the addresses of unfinished searches, with their trials and attempts."""
    for job in reader.items("/jobs?kind=search"):
        if job["finished"] is None:
            yield from (f"/jobs/{job['id']}{part}" for part in ("", "/trials", "/attempts"))


def _of_job(reader: Reader, job: Body) -> Iterator[str]:
    one = f"/jobs/{job['id']}"
    yield one
    for part in ("artifacts", "attempts", "metrics", "events?limit=5000", "logs?limit=5000"):
        yield f"{one}/{part}"
    if job["kind"] == "search":
        yield from (f"{one}/trials", f"{one}/trials/columns")
        yield from (f"{one}/trials/{trial['number']}" for trial in reader.items(f"{one}/trials")[:1])


def _of_dataset(reader: Reader, dataset: Body) -> Iterator[str]:
    project = dataset["project"]
    query = f"?project={project}" if project else ""
    one = f"/datasets/{dataset['slug']}"
    versions = reader.items(f"{one}/versions{query}")
    if any(version["state"] == "preparing" for version in versions):
        return
    yield one + query
    for version in versions:
        address = f"{one}/versions/{version['number']}"
        yield address + query
        if version["state"] == "ready" and project:  # bundled ones come from a wheel that may be another
            yield f"{address}/preview{query}"


def _of_model(reader: Reader, name: str) -> Iterator[str]:
    versions = reader.items(f"/models/{name}/versions")
    if any(version["state"] == "validating" for version in versions):
        return
    yield from (f"/models/{name}", f"/models/{name}/history", f"/endpoints/{name}")
    yield from (f"/models/{name}/versions/{version['number']}" for version in versions)


TABS = ("trials", "charts", "evaluation", "logs", "system", "artifacts", "attempts", "spec")
PLACES = {
    r"/jobs/\d+(/trials/\d+)?": "{0}",
    r"/promotions/(\d+)": "/approvals/{1}",
    r"/experiments/(\d+)": "/p/flow/experiments/{1}",
    r"/datasets/\w+/versions/\d+(\?.*)?": "{0}",
    r"/models/\w+(/versions/\d+)?": "{0}",
    r"/endpoints/\w+": "{0}",
}
"""The page for each address of the REST API."""
LISTS = ("/", "/jobs", "/queue", "/models", "/approvals", "/endpoints", "/datasets", "/workers", "/people",
    "/audit", "/tokens", "/projects", "/p/flow/experiments", "/p/flow/settings")  # fmt: skip


def pages(answers: Body) -> list[str]:
    """List the pages of all that was recorded, with each tab for one job of a kind."""
    paths = list(LISTS)
    for address in (*answers["ended"], *answers["unfinished"]):
        for pattern, page in PLACES.items():
            if match := re.fullmatch(pattern, address):
                paths.append(page.format(match[0], *match.groups()))
    jobs = {body["kind"]: a for a, body in answers["ended"].items() if re.fullmatch(r"/jobs/\d+", a)}
    return paths + [f"{job}?tab={tab}" for job in jobs.values() for tab in TABS]


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """List an earlier answer's fields that a later one lacks or changes; it may have more fields.

    A list may have further items in between, since work continues after an upgrade.
    """
    # Moments, in seconds since 1970, were cut to whole seconds.
    if before == now or (isinstance(before, int) and isinstance(now, float) and abs(now - before) < 1):
        return []
    if isinstance(before, dict) and isinstance(now, dict):
        return _of_fields(before, now, place)
    if isinstance(before, list) and isinstance(now, list):
        if place == "/items":
            return _of_items(before, now)
        if place == "/series":
            # The order of series is not part of the contract. It was that of numbers as text, with trial
            # 10 before trial 2.
            before, now = (sorted(series, key=_identity) for series in (before, now))
        if len(before) == len(now):
            pairs = enumerate(zip(before, now, strict=True))
            return [
                difference for i, (old, new) in pairs for difference in differences(old, new, f"{place}/{i}")
            ]
    return [f"{place}: {str(before)[:200]!r} became {str(now)[:200]!r}"]


def _identity(series: Body) -> list[str]:
    return [str(series[name]) for name in ("job", "name", "trial", "execution", "x")]


def _of_fields(before: Body, now: Body, place: str) -> list[str]:
    lines = [f"{place}/{name} is missing" for name in before.keys() - now.keys()]
    for name in (before.keys() & now.keys()) - VOLATILE:
        lines += differences(before[name], now[name], f"{place}/{name}")
    return lines


def _of_items(before: list[Any], now: list[Any]) -> list[str]:
    rest = iter(now)
    for item in before:
        if not any(not differences(item, other) for other in rest):
            return [f"/items: {str(item)[:300]} is missing, changed, or not in its place"]
    return []
