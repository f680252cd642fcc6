"""`python -m workers.serving`: the prediction server."""

import logging
import sys

import uvloop

from workers.serving.router import serve
from workers.serving.settings import parse


def main() -> int:
    """Run until told to end; return the exit status."""
    settings = parse(sys.argv[1:])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for every poll helps nobody
    try:
        uvloop.run(serve(settings))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"the prediction server cannot start: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
