"""Stores the importance of a search's hyperparameters, which takes a process 2 s to compute."""

from jobs.messages.analysis import FEWEST_TRIALS, Importance, ImportanceAnswer, Influence
from jobs.models import Analysis, Job

SHARES = {"learning_rate": 0.61, "units": 0.2, "optimizer": 0.05}
CHANCES = {"learning_rate": 0.025, "units": 0.05, "optimizer": 0.4}
INFLUENCES = {
    "learning_rate": Influence(verdict="lower", correlation=-0.5, low=-0.7, high=-0.2, trials=38),
    "units": Influence(verdict="unclear", correlation=0.1, low=-0.2, high=0.4, trials=38),
    "optimizer": Influence(verdict="choice", best=("adam", "rmsprop"), trials=38),
}


def store_importance(search: Job) -> None:
    """Store an importance as if it were computed from the present trials, if there are enough."""
    trials = search.trials.scored().count()
    if trials < FEWEST_TRIALS:
        return
    answer = ImportanceAnswer(
        used=trials,
        importances=tuple(
            Importance(name=name, alone=share, chance=CHANCES[name], influence=INFLUENCES[name])
            for name, share in SHARES.items()
        ),
    )
    kind = Analysis.Kind.IMPORTANCE
    Analysis.objects.create(job=search, kind=kind, trials=trials, result=answer.model_dump(mode="json"))
