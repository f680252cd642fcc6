"""A REST client for one demo user, and a helper to wait for results."""

import time
from collections.abc import Callable
from typing import Any

import httpx2

Body = dict[str, Any]

RETRY_SECONDS = 0.5
RETRY_TIMEOUT = 60.0


class DemoError(Exception):
    """A demo step failed; the message names the step and the reason."""


class Client:
    """Calls the REST API with one user's token. An unexpected response ends the demo."""

    def __init__(self, url: str, token: str, name: str, *, patience: float = RETRY_TIMEOUT) -> None:
        self.name, self._timeout = name, patience
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60)

    def get(self, path: str, **query: Any) -> Body:
        return self._answer(self._send("GET", path, params=query))

    def post(self, path: str, body: Body | None = None, *, okay: tuple[int, ...] = ()) -> Body:
        """Send a POST request and return the JSON; statuses in `okay` count as success."""
        return self._answer(self._send("POST", path, json=body or {}), okay=okay)

    def upload(
        self, path: str, form: dict[str, str], name: str, content: bytes, *, okay: tuple[int, ...] = ()
    ) -> Body:
        """Send a form with a file and return the JSON; statuses in `okay` count as success."""
        return self._answer(self._send("POST", path, data=form, files={"file": (name, content)}), okay=okay)

    def put(self, path: str, body: Body) -> Body:
        return self._answer(self._send("PUT", path, json=body))

    def refused(self, path: str, body: Body) -> int:
        """Send a POST request that should be refused; return the status."""
        return self._send("POST", path, json=body).status_code

    def _send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Send a request; retry while the server restarts."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                answer = self._http.request(method, path, **options)
                # 503: a required part, such as the database, restarts.
                if answer.status_code != 503:
                    return answer
            except httpx2.TransportError as error:
                if time.monotonic() > deadline:
                    raise DemoError(f"{method} {path}: {error}") from error
            if time.monotonic() > deadline:
                raise DemoError(f"{method} {path}: the service is not available")
            time.sleep(RETRY_SECONDS)

    def _answer(self, answer: httpx2.Response, *, okay: tuple[int, ...] = ()) -> Body:
        if answer.is_success or answer.status_code in okay:
            return dict(answer.json()) if answer.content else {}
        request = answer.request
        message = f"{request.method} {request.url.path} as {self.name}: {answer.status_code}"
        raise DemoError(f"{message} {answer.text[:500]}")


def wait_for[T](ask: Callable[[], T | None], *, seconds: float, what: str, every: float = 0.5) -> T:
    """Call `ask` until it returns a true value, and return that value.

    Raises:
        DemoError: it returned none in time.
    """
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise DemoError(f"waited {seconds:.0f} s for {what}")
        time.sleep(every)
    return answer
