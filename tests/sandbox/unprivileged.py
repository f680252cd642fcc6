"""Runs attacks as a worker without privileges: `python -m tests.sandbox.unprivileged [forked] LEVEL …`.

It prints the levels that it finds and, as JSON, the results at those given levels that are offered.
"""

import json
import sys

from jobs.messages.sandbox import Level
from tests.sandbox.exercise import exercise
from workers.confinement.sandbox.levels import find_levels

FORKED = "forked"


def main() -> None:
    states = find_levels()
    forked = sys.argv[1:2] == [FORKED]
    levels = [Level(name) for name in sys.argv[1 + forked :]]
    results = {
        level: exercise(level, None, forked=forked).as_json()
        for level in levels
        if any(state.offered and state.level is level for state in states)
    }
    sys.stdout.write(
        json.dumps({"states": [state.model_dump(mode="json") for state in states], "results": results})
    )


if __name__ == "__main__":
    main()
