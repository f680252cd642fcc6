"""`python -m workers.node --pool P --slots N [--name NAME]`: the worker node."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence

import django


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a node until it is told to end."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    django.setup()
    from django.conf import settings as django_settings

    from workers.node.folders import NameTaken
    from workers.node.node import run_node
    from workers.node.settings import read_settings
    from workers.supervise.environment import secrets_of

    settings = read_settings(arguments, django_settings.TRAINYARD_HOME)
    secrets = secrets_of(os.environ) | {django_settings.SECRET_KEY}
    try:
        asyncio.run(run_node(settings, secrets=secrets))
    except NameTaken as taken:
        sys.exit(str(taken))
    logging.shutdown()
    os._exit(0)  # a thread may still wait for a database that is away


if __name__ == "__main__":
    main()
