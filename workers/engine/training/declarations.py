"""Names the hyperparameters that code declares in a trial and that its search does not know."""

from typing import Any

from jobs.spec.experiment import ExperimentSpec
from workers.engine.report import Report


def warn_of_unknown(report: Report, spec: ExperimentSpec, hyperparameters: Any) -> None:
    """Warn of the hyperparameters that a trial's code has asked for and that the search space lacks.

    Args:
        report: the trial's report.
        spec: the trial's spec; without a search, the code's defaults are meant.
        hyperparameters: of KerasTuner, after the code has used them.
    """
    if spec.search is None or not spec.search.space:
        return
    known = {row.name for row in spec.search.space}
    for declared in hyperparameters.space:
        if declared.name not in known and hyperparameters.is_active(declared):
            report.warning(
                "hyperparameter_not_searched",
                f"a trial asks for {declared!r}, but the search space has no {declared.name!r}: it has its "
                f"default, {hyperparameters.values.get(declared.name)!r}, in all trials. To search it, add a "
                f"row with the name {declared.name!r} to the space of a new search.",
            )
