"""Creates a project and queues one training. The argument is the number of its epochs."""

import sys
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402

from jobs.models import Reachability  # noqa: E402
from tests.jobs.yard import make_yard  # noqa: E402

table = Path(settings.TRAINYARD_ARTIFACTS) / "aa" / ("a" * 64)
table.parent.mkdir(parents=True, exist_ok=True)
table.write_bytes(b"x")
yard = make_yard()
Reachability.objects.all().delete()  # as in a new installation
yard.submit(fit={"epochs": int(sys.argv[1])}, after={})
