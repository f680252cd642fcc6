"""Runs a module as another user.

Command line: `python -m workers.confinement.isolation.run_confined CONFINEMENT MODULE [ARGUMENT …]`.
"""

import runpy
import sys

from jobs.messages.fork import Confinement
from workers.confinement.isolation.confine import confine


def main() -> None:
    """Confine this process and run the module in its place."""
    confinement, module, *arguments = sys.argv[1:]
    confine(Confinement.model_validate_json(confinement))
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
