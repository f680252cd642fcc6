"""Checks whether the web server, its dependencies and the prediction server with its models are ready."""

import asyncio
import contextlib
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

PAUSE = 0.2
# Seconds. A model that needs longer to load does not keep the dashboard from being announced.
MODELS_WAIT = 30.0
# The parts use plain HTTP; loading all CA certificates would take 40 ms per check.
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Readiness:
    """Checks the web server's `/readyz`, the prediction server and the models that it serves."""

    def __init__(self, *, web: str, serving: str, token_file: Path) -> None:
        self._web, self._serving, self._token_file = web, serving, token_file
        self._models_deadline: float | None = None

    async def missing(self) -> str | None:
        """Return the names for parts that are not ready; None if all are.

        A model counts while it loads, but no longer than `MODELS_WAIT`.
        """
        if missing := await self._web_missing() or await self._serving_missing():
            return missing
        if self._models_deadline is None:
            self._models_deadline = time.monotonic() + MODELS_WAIT
        loading = [name for name, error in (await self.unready_models()).items() if not error]
        if not loading or time.monotonic() > self._models_deadline:
            return None
        return f"models ({', '.join(loading)})"

    async def wait(self) -> None:
        while await self.missing():
            await asyncio.sleep(PAUSE)

    async def unready_models(self) -> dict[str, str]:
        """Return the models whose production version does not answer, each with its load error."""
        async with _client(self._serving) as client:
            # The file is private to this user; a server on a loopback address needs no token.
            with contextlib.suppress(OSError):
                client.headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"
            try:
                if (await client.get("/v2/health/ready")).is_success:
                    return {}
                errors = _errors((await client.post("/v2/repository/index")).json())
                return {name: errors[name] for name in errors if not await _answers(client, name)}
            except (httpx2.HTTPError, ValueError, KeyError, TypeError):
                return {"(unknown)": ""}

    async def _web_missing(self) -> str | None:
        try:
            async with _client(self._web) as client:
                answer = await client.get("/readyz")
        except httpx2.HTTPError as error:
            return f"web ({type(error).__name__})"
        if answer.status_code == httpx2.codes.OK:
            return None
        try:
            return ", ".join(answer.json()["missing"])
        except (ValueError, KeyError, TypeError):
            return f"web (status {answer.status_code})"

    async def _serving_missing(self) -> str | None:
        try:
            async with _client(self._serving) as client:
                await client.get("/v2/health/live")
        except httpx2.HTTPError:
            return "serving"
        return None


def _client(url: str) -> httpx2.AsyncClient:
    # Without the environment's proxy, which cannot reach this machine's loopback address.
    return httpx2.AsyncClient(base_url=url, timeout=5, trust_env=False, verify=NO_AUTHORITIES)


def _errors(versions: list[dict[str, Any]]) -> dict[str, str]:
    """Return the error that each model's versions have, empty if they have none."""
    errors: dict[str, str] = {}
    for version in versions:
        errors[version["name"]] = errors.get(version["name"]) or version["reason"]
    return errors


async def _answers(client: httpx2.AsyncClient, model: str) -> bool:
    """Return whether a model's production version answers."""
    return (await client.get(f"/v2/models/{quote(model, safe='')}/ready")).is_success
