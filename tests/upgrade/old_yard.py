"""The installation whose home is saved: its users, and queries for its rows."""

from pathlib import Path
from typing import Any

import httpx2

from tests.flow.rows import read
from tests.flow.yard import PROJECT, RunningYard
from tests.ops.conftest import wait_for
from webapp.demo.client import Client

SCOPES = {"ada": "read,write", "grace": "read,write,approve", "root": "read,admin"}
BUNDLED = ("iris", "diabetes", "wine", "breast_cancer", "digits")
RATE = {"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1, "sampling": "log"}
FLOWER = [5.1, 3.5, 1.4, 0.2]


class OldYard(RunningYard):
    """A yard whose people have tokens that do not expire, made by commands alone."""

    def open(self, *, slots: int = 2, database: Path | None = None) -> None:
        """Start everything, add the people, and wait until the bundled data are profiled."""
        self.start("--slots", str(slots))
        self.urls = self.ready()
        for name in SCOPES:
            self._command("adduser", name, *(["--admin"] if name == "root" else []))
        self.tokens = {name: self._token(name, scopes) for name, scopes in SCOPES.items()}
        clients = {name: Client(self.urls["web"], token, name) for name, token in self.tokens.items()}
        self.ada, self.grace = clients["ada"], clients["grace"]
        self.ada.post("/projects", {"slug": PROJECT, "name": "Flow"})
        self.ada.put(f"/projects/{PROJECT}/members", {"user": "grace", "role": "approver"})
        for name in BUNDLED:
            self.until_ready(name)

    def _token(self, name: str, scopes: str) -> str:
        return self._command("token", name, "--scopes", scopes).strip()

    def _command(self, *arguments: str) -> str:
        done = self.manage(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def upload_unreadable(self, slug: str) -> None:
        """Send a table without its target, and wait until a worker has refused it."""
        self.send_table(slug, b"a,b\n1,2\n3,4\n", target="nothing")

        def refused() -> bool:
            return bool(self.ada.get(f"/datasets/{slug}/versions/1", project=PROJECT)["state"] == "failed")

        wait_for(refused, f"data set {slug} to be refused")

    def send_table(self, slug: str, content: bytes, *, target: str) -> None:
        """Send a table that a worker has yet to read."""
        answer = httpx2.post(
            f"{self.urls['web']}/api/v1/datasets",
            headers=self.bearer("ada"),
            data={"project": PROJECT, "slug": slug, "target": target},
            files={"file": (f"{slug}.csv", content)},
        )
        assert answer.status_code == 201, answer.text

    def change(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Send a PUT or PATCH."""
        url = f"{self.urls['web']}/api/v1{path}"
        answer = httpx2.request(method, url, json=body, headers=self.bearer("ada"))
        assert answer.is_success, answer.text

    def trials_in(self, job: int, state: str) -> int:
        """Count a search's trials that are in a state."""
        query = "SELECT count(*) FROM jobs_trial WHERE job_id = ? AND state = ?"
        return int(read(self.home, query, job, state)[0][0])

    def until_candidate(self, model: str, number: int) -> None:
        """Wait until a version has passed its validation."""
        address = f"/models/{model}/versions/{number}"
        wait_for(lambda: self.ada.get(address)["state"] != "validating", f"version {number} to be checked")
        assert self.ada.get(address)["state"] == "candidate"
