"""Users' scripts that fail. A browser test searches and serves another."""

from typing import Any

import pytest

from tests.flow.yard import PROJECT, RunningYard

pytestmark = pytest.mark.timeout(1800)


def upload(installation: RunningYard, text: str, name: str = "train.py") -> dict[str, Any]:
    """Store a script in the project and return its version of code."""
    answer = installation._http.post(
        f"{installation.urls['web']}/api/v1/code",
        headers=installation.bearer("ada"),
        data={"project": PROJECT},
        files={"file": (name, text.encode())},
    )
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def spec(digest: str, **parts: Any) -> dict[str, Any]:
    """Return the spec for a script without data."""
    model = {"kind": "script", "digest": digest, "entry": "train.py", "args": parts.pop("args", {})}
    return {"version": 1, "model": model, **parts}


def test_a_script_that_fails_names_its_error_and_one_that_prints_too_much_is_ended(
    flow_installation: RunningYard,
) -> None:
    broken = upload(flow_installation, "def main():\n    raise ValueError('no such column')\nmain()\n")
    job = flow_installation.until_final(flow_installation.submit(spec(broken["digest"])))
    assert (job["state"], job["error"]["code"]) == ("failed", "script_failed")
    assert job["error"]["message"].endswith("ValueError: no such column")
    assert "workers" not in job["error"]["traceback"]
    loud = upload(flow_installation, "for _ in range(10**6): print('x' * 1000)\n")
    job = flow_installation.until_final(flow_installation.submit(spec(loud["digest"])))
    assert (job["state"], job["error"]["code"]) == ("failed", "too_much_output")
