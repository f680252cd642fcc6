"""Runs an experiment with the generated client. Arguments: URL, token, project."""

import sys
import time

from trainyard_client import AuthenticatedClient, models
from trainyard_client.api.experiments import create_experiment, submit_experiment
from trainyard_client.api.jobs import get_job
from trainyard_client.api.trials import download_trials

url, token, project = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)
mlp = models.TemplateModel(template=models.TemplateModelTemplate.MLP)
units = models.IntParameter(name="units", kind="int", min_=16, max_=64, step=16)
accuracy = models.Objective(metric="val_accuracy", direction=models.ObjectiveDirection.MAX)
search = models.SearchSpec(space=[units], objective=accuracy, max_trials=4, executions_per_trial=2)
spec = models.ExperimentSpec(data=models.DataSpec(dataset="digits"), model=mlp, search=search)
body = models.ExperimentIn(project=project, name="by the client", spec=spec)
experiment = create_experiment.sync(client=client, body=body)
assert isinstance(experiment, models.ExperimentOut), experiment
submitted = submit_experiment.sync(experiment.id, client=client)
assert isinstance(submitted, models.SubmittedOut), submitted
while isinstance(job := get_job.sync(submitted.job, client=client), models.JobOut) and not job.finished:
    time.sleep(0.2)
if isinstance(job, models.JobOut) and (best := job.results.best_trial):
    print(best.number, best.values.to_dict(), round(best.score or 0, 4))
table = download_trials.sync(submitted.job, client=client)
assert isinstance(table, str), table
print(table.partition(",")[0])
