"""Makes a project of a user with a running job, and appends an event for each line that it reads.

The argument is the user's name. The first line of the output names the job.
"""

import sys

import django

django.setup()

from jobs.actions.runs import events  # noqa: E402
from jobs.models import User  # noqa: E402
from tests.factories import make_job, make_project  # noqa: E402

user = User.objects.get(username=sys.argv[1])
project = make_project("yard", owner=user)
job = make_job(by=user, project=project, kind="train", state="running")
sys.stdout.write(f"job {job.pk}\n")
sys.stdout.flush()
for line in sys.stdin:
    events.append(job.pk, [events.event("log", job, level="info", source="runner", line=line.strip())])
