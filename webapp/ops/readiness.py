"""Is everything up? Asked of the parts themselves."""

import asyncio
import ssl
from urllib.parse import urlsplit

import httpx

PAUSE = 0.5
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Our own parts speak plain http; reading the certificates of all authorities would take 40 ms a look."""


class Readiness:
    """Asks the web's `/readyz` and the prediction server's port."""

    def __init__(self, *, web: str, serving: str) -> None:
        self._web = web
        self._serving = urlsplit(serving)

    async def missing(self) -> str | None:
        """Return what is not ready, in words; None when everything is."""
        return await self._web_misses() or await self._serving_misses()

    async def wait(self) -> None:
        """Wait until nothing is missing."""
        while await self.missing():
            await asyncio.sleep(PAUSE)

    async def _web_misses(self) -> str | None:
        try:
            async with httpx.AsyncClient(timeout=5, trust_env=False, verify=NO_AUTHORITIES) as client:
                answer = await client.get(f"{self._web}/readyz")
        except httpx.HTTPError as error:
            return f"web ({type(error).__name__})"
        return None if answer.status_code == httpx.codes.OK else _named(answer)

    async def _serving_misses(self) -> str | None:
        try:
            _, writer = await asyncio.open_connection(self._serving.hostname, self._serving.port)
        except OSError:
            return "serving"
        writer.close()
        return None


def _named(answer: httpx.Response) -> str:
    try:
        return ", ".join(answer.json()["missing"])
    except (ValueError, KeyError, TypeError):
        return f"web (it answers {answer.status_code})"
