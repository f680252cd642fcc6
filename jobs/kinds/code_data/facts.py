from jobs.kinds.base import Facts
from jobs.kinds.code_data.payload import CodeDataPayload, CodeDataResult, CodeDataTask

CODE_DATA = Facts(
    name="code_data",
    title="Load data",
    payload=CodeDataPayload,
    result=CodeDataResult,
    task=CodeDataTask,
    engine="workers.engine.tasks.code_data.run",
    tabs=("overview", "logs", "system", "artifacts", "attempts"),
    details="jobs.queries.data.code_data.code_data_of_job",
    details_template="runs/details/code_data.html",
)
