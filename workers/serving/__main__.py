"""Command line of the prediction server: `python -m workers.serving`."""

import logging
import sys

import uvloop

from workers.serving.router import serve
from workers.serving.settings import parse


def main() -> int:
    """Run until a signal; return the exit status."""
    settings = parse(sys.argv[1:])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # It logs a line for each request to the dashboard.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        uvloop.run(serve(settings))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"the prediction server cannot start: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
