"""A person's way to the public REST API, and anybody's way to the prediction port."""

import time
from collections.abc import Callable
from typing import Any

import httpx

Body = dict[str, Any]

RETRY_SECONDS = 0.5
PATIENT_SECONDS = 60.0


class DemoError(Exception):
    """A step of the demo did not hold; the message says which and what came instead."""


class Client:
    """REST with one person's token. An answer that is not as expected ends the demo."""

    def __init__(self, url: str, token: str, name: str, *, patience: float = PATIENT_SECONDS) -> None:
        self.name, self._patience = name, patience
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60)

    def get(self, path: str, **query: Any) -> Body:
        """Return the JSON at `path`."""
        return self._answer(self._send("GET", path, params=query))

    def post(self, path: str, body: Body | None = None, *, okay: tuple[int, ...] = ()) -> Body:
        """Post and return the JSON; statuses in `okay` are fine beside success."""
        return self._answer(self._send("POST", path, json=body or {}), okay=okay)

    def put(self, path: str, body: Body) -> Body:
        """Put and return the JSON."""
        return self._answer(self._send("PUT", path, json=body))

    def refused(self, path: str, body: Body) -> int:
        """Post what should be refused and return the status."""
        return self._send("POST", path, json=body).status_code

    def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Send; a server that is just being restarted is waited for."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                answer = self._http.request(method, path, **given)
                if answer.status_code != 503:
                    return answer
            except httpx.TransportError as error:
                if time.monotonic() > deadline:
                    raise DemoError(f"{method} {path}: {error}") from error
            if time.monotonic() > deadline:
                raise DemoError(f"{method} {path}: the service is not available")
            time.sleep(RETRY_SECONDS)

    def _answer(self, answer: httpx.Response, *, okay: tuple[int, ...] = ()) -> Body:
        if answer.is_success or answer.status_code in okay:
            return dict(answer.json()) if answer.content else {}
        request = answer.request
        said = f"{request.method} {request.url.path} as {self.name}: {answer.status_code}"
        raise DemoError(f"{said} {answer.text[:500]}")


def wait_for[T](ask: Callable[[], T | None], *, seconds: float, what: str, every: float = 0.5) -> T:
    """Ask until there is an answer.

    Raises:
        DemoError: there was none in time.
    """
    deadline = time.monotonic() + seconds
    while (answer := ask()) is None:
        if time.monotonic() > deadline:
            raise DemoError(f"waited {seconds:.0f} s for {what}")
        time.sleep(every)
    return answer
