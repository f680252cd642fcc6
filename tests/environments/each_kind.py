"""Installs a wheel and a source distribution at one level: `python -m tests.environments.each_kind LEVEL`.

It prints the versions that were installed or the causes of failures, as JSON. Tests start it as root, and as
a user without privileges.
"""

import functools
import json
import sys
import tempfile
from pathlib import Path

from jobs.messages.sandbox import Level
from tests.environments.conftest import Bench, benches, claim, python_of, served, serving
from tests.environments.packages import index_of, source, wheel
from tests.sandbox.conftest import UIDS
from workers.confinement.environments import uv_command
from workers.confinement.environments.building import Builder, BuildLimits
from workers.confinement.environments.failures import BuildFailed
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.sandbox.levels import find_levels


def install(bench: Bench, name: str) -> str:
    """Return the installed module's value, or the cause of the failure."""
    try:
        held = bench.ensure(name)
    except BuildFailed as failed:
        return failed.message
    value = python_of(held, f"import {name}; print({name}.FOUND)")
    return f"{value} at {held.facts.level}"


def main() -> None:
    level = Level(sys.argv[1])
    users = RunnerUsers(UIDS, Path(tempfile.mkdtemp()))
    with claim(users) as owner:
        states = find_levels(None if owner is None else lambda: owner, allowed=(level,))
    states = tuple(state for state in states if state.level is level)
    if not states[0].offered:
        sys.stdout.write(json.dumps({"missing": states[0].reason}))
        return
    builder = Builder(states, uv_command.find_uv(), functools.partial(claim, users), BuildLimits(seconds=120))
    results = {}
    with benches(builder) as bench, serving(bench.root) as index:
        for origin in ("folder", "index"):
            # Other names: equal requirements would share an environment.
            wheel(bench.wheels, f"wheel{origin}", code="FOUND = 'wheel'\n")
            source(bench.wheels, f"source{origin}", "found = 'source'")
        index_of(bench.wheels, bench.root)
        for origin in ("folder", "index"):
            bench.index = served(bench, index.address) if origin == "index" else None
            for kind in ("wheel", "source"):
                results[f"{kind} of {origin}"] = install(bench, f"{kind}{origin}")
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
