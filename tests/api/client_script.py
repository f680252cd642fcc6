"""Runs an experiment with the generated client. Arguments: URL, token, project, a file with the spec."""

import json
import sys
import time
from pathlib import Path

from trainyard_client import AuthenticatedClient, models
from trainyard_client.api.experiments import create_experiment, submit_experiment, validate_experiment
from trainyard_client.api.jobs import get_job

url, token, project, file = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)
spec = models.Spec.from_dict(json.loads(Path(file).read_text()))

verdict = validate_experiment.sync(client=client, body=models.ValidationIn(project=project, spec=spec))
assert isinstance(verdict, models.ValidationOut), verdict
if not verdict.valid:
    sys.exit("\n".join(f"{error.pointer}: {error.message}" for error in verdict.errors))
body = models.ExperimentIn(project=project, name="by the client", spec=spec)
experiment = create_experiment.sync(client=client, body=body)
assert isinstance(experiment, models.ExperimentOut), experiment
submitted = submit_experiment.sync(experiment.id, client=client)
assert isinstance(submitted, models.SubmittedOut), submitted
while isinstance(job := get_job.sync(submitted.job, client=client), models.JobOut):
    if job.finished is not None:
        break
    time.sleep(0.2)
assert isinstance(job, models.JobOut), job
if best := job.results.best_trial:
    print(best.number, best.values.to_dict(), round(best.score or 0, 4))
