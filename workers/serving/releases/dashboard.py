"""HTTP client for the dashboard. It uses the server's own token, except to check a caller's token."""

from collections.abc import AsyncIterator, Collection
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from jobs.messages.release import ReplicaReport
from transport.authorities import trusted_authorities
from workers.serving.access import Access
from workers.serving.versions.artifacts import ArtifactRefused

MAX_DIGESTS = 500
"""The dashboard answers a question about this many tokens at once."""
_POLL_SECONDS = 25
_UNKNOWN, _NO_SCOPE, _FIRST_SERVER_ERROR = 401, 403, 500
# A token may be replaced later, so 401 and 403 are not among them.
_FINAL_REFUSALS = (400, 404, 413, 422)


class DashboardUnavailable(OSError):
    """The dashboard did not answer, or its answer was invalid."""


class DashboardRefused(DashboardUnavailable):
    """The dashboard answers, but not this request."""


class CredentialRefused(DashboardRefused):
    """The dashboard does not know this server's credential, or gives it nothing."""


class ReportRefused(Exception):
    """The dashboard does not accept a report, and would not accept it later."""


class Poll(NamedTuple):
    """A long poll's result: unverified releases as parsed JSON."""

    sequence: int
    releases: list[Any]


class Dashboard:
    """Calls the dashboard's API. The token file is read for each call, because tokens get replaced."""

    def __init__(self, url: str, token_file: Path) -> None:
        self._token_file = token_file
        # No proxy from the environment: the dashboard is internal, and usually on the same machine.
        # Both run behind the TLS proxy: without this header the dashboard would redirect to HTTPS.
        headers = {"X-Forwarded-Proto": "https"}
        self._http = httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=10.0, trust_env=False, verify=trusted_authorities()
        )

    async def poll(self, after: int | None, *, at_once: bool = False) -> Poll:
        """Wait for releases newer than sequence `after`; with None, return all at once.

        Args:
            after: the sequence of the last poll.
            at_once: do not wait for a new release.

        Raises:
            DashboardUnavailable: there was no valid answer.
        """
        params: dict[str, int] = {"wait": 0 if at_once else _POLL_SECONDS}
        if after is not None:
            params["after"] = after
        try:
            answer = await self._http.get(
                "/api/v1/serving/releases",
                params=params,
                headers=self._authorization(),
                timeout=_POLL_SECONDS + 10.0,  # the dashboard holds the request until there is a release
            )
            _check(answer, "a poll for releases")
            body = answer.json()
            return Poll(int(body["sequence"]), list(body["releases"]))
        except httpx2.HTTPError as error:
            raise DashboardUnavailable(f"{type(error).__name__}: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise DashboardUnavailable(f"the dashboard's answer to a poll is invalid: {error!r}") from error

    async def report(self, report: ReplicaReport) -> None:
        """Report the versions that one endpoint serves.

        Raises:
            ReportRefused: the report is invalid, or its endpoint was deleted.
            DashboardUnavailable: the report was not received.
        """
        try:
            answer = await self._http.post(
                "/api/v1/serving/reports",
                content=report.model_dump_json(),
                headers={**self._authorization(), "content-type": "application/json"},
            )
        except httpx2.HTTPError as error:
            raise DashboardUnavailable(f"{type(error).__name__}: {error}") from error
        if answer.status_code in _FINAL_REFUSALS:
            raise ReportRefused(f"{answer.status_code}: {answer.text[:200]}")
        _check(answer, "a report")

    async def artifact(self, digest: str) -> AsyncIterator[bytes]:
        """Yield an artifact's bytes in chunks.

        Raises:
            ArtifactRefused: the artifact does not exist or is not accessible.
            DashboardUnavailable: the download failed.
        """
        path = f"/api/v1/artifacts/{digest}"
        try:
            async with self._http.stream("GET", path, headers=self._authorization()) as answer:
                # A repeated download would get the same answer, so these are not `DashboardUnavailable`.
                if answer.status_code in (403, 404):
                    raise ArtifactRefused(
                        f"the dashboard did not deliver artifact {digest}: {answer.status_code}"
                    )
                answer.raise_for_status()
                async for chunk in answer.aiter_bytes():
                    yield chunk
        except httpx2.HTTPError as error:
            raise DashboardUnavailable(f"{type(error).__name__}: {error}") from error

    async def access_of(self, token: str) -> Access | None:
        """Return the access that a caller's token gives; None if the dashboard does not know it.

        Raises:
            DashboardUnavailable: it cannot be reached.
        """
        headers = {"authorization": f"Bearer {token}"}
        try:
            answer = await self._http.get("/api/v1/serving/access", headers=headers)
        except httpx2.HTTPError as error:
            raise DashboardUnavailable(f"{type(error).__name__}: {error}") from error
        if answer.status_code == _UNKNOWN:
            return None
        if answer.status_code == _NO_SCOPE:
            return Access(None)
        _check(answer, "a question about a token")
        try:
            return _access(answer.json())
        except (ValueError, KeyError, TypeError) as error:
            raise DashboardUnavailable(
                f"the dashboard's answer about a token is invalid: {error!r}"
            ) from error

    async def known_access(self, digests: Collection[str], used: Collection[str]) -> dict[str, Access]:
        """Return the access of those tokens that are valid now, by their SHA-256.

        Args:
            digests: the tokens, at most `MAX_DIGESTS`.
            used: those that have asked since the last call.

        Raises:
            DashboardUnavailable: there was no valid answer.
        """
        question = {"digests": list(digests), "used": list(used)}
        try:
            answer = await self._http.post(
                "/api/v1/serving/access", json=question, headers=self._authorization()
            )
        except httpx2.HTTPError as error:
            raise DashboardUnavailable(f"{type(error).__name__}: {error}") from error
        _check(answer, "a question about tokens")
        try:
            return {entry["digest"]: _access(entry) for entry in answer.json()["tokens"]}
        except (ValueError, KeyError, TypeError) as error:
            raise DashboardUnavailable(
                f"the dashboard's answer about tokens is invalid: {error!r}"
            ) from error

    async def close(self) -> None:
        await self._http.aclose()

    def _authorization(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token_file.read_text().strip()}"}


def _check(answer: httpx2.Response, question: str) -> None:
    """Raise the error of an answer; a refusal has another one than no answer."""
    if not answer.is_error:
        return
    text = f"{question} was answered with {answer.status_code}: {_detail(answer)[:300]}"
    if answer.status_code in (_UNKNOWN, _NO_SCOPE):
        make = "an administrator makes one with the command `serving-token NAME`"
        raise CredentialRefused(f"this server's credential is not valid, {make} ({text})")
    if answer.status_code < _FIRST_SERVER_ERROR:
        raise DashboardRefused(text)
    raise DashboardUnavailable(text)


def _detail(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["detail"])
    # A proxy answers with a page, and a fault of the dashboard with anything.
    except (ValueError, KeyError, TypeError):
        return answer.text


def _access(body: dict[str, Any]) -> Access:
    ends, endpoints = body["expires"], body["endpoints"]
    expires = None if ends is None else datetime.fromisoformat(ends).timestamp()
    return Access(
        None if endpoints is None else frozenset(endpoints),
        expires,
        body["warning"],
        # A dashboard of an earlier version does not send it.
        bool(body.get("metrics", False)),
    )
