"""Checks whether the web server, its dependencies and the prediction server are ready."""

import asyncio
import ssl
from urllib.parse import urlsplit

import httpx

PAUSE = 0.5
# The parts use plain HTTP; loading all CA certificates would take 40 ms per check.
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Readiness:
    """Checks the web server's `/readyz` and the prediction server's port."""

    def __init__(self, *, web: str, serving: str) -> None:
        self._web = web
        self._serving = urlsplit(serving)

    async def missing(self) -> str | None:
        """Return the names of parts that are not ready; None if all are."""
        return await self._web_missing() or await self._serving_missing()

    async def wait(self) -> None:
        while await self.missing():
            await asyncio.sleep(PAUSE)

    async def _web_missing(self) -> str | None:
        try:
            # Without the environment's proxy, which cannot reach this machine's loopback address.
            async with httpx.AsyncClient(timeout=5, trust_env=False, verify=NO_AUTHORITIES) as client:
                answer = await client.get(f"{self._web}/readyz")
        except httpx.HTTPError as error:
            return f"web ({type(error).__name__})"
        if answer.status_code == httpx.codes.OK:
            return None
        try:
            return ", ".join(answer.json()["missing"])
        except (ValueError, KeyError, TypeError):
            return f"web (status {answer.status_code})"

    async def _serving_missing(self) -> str | None:
        try:
            _, writer = await asyncio.open_connection(self._serving.hostname, self._serving.port)
        except OSError:
            return "serving"
        writer.close()
        return None
