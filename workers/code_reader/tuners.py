"""Recognizes the tuners of KerasTuner by their names."""

PACKAGES = ("keras_tuner", "kerastuner", "kt")
"""Its names today and before 2021, and that of most guides: a pasted cell may lack the line of the import."""
SEARCHES = ("RandomSearch", "BayesianOptimization", "Hyperband", "GridSearch")
"""Tuners whose search may be an experiment."""
TUNERS = frozenset({*SEARCHES, "Tuner", "SklearnTuner", "Sklearn"})


def tuner_of(name: str) -> str:
    """Return the tuner that a full name means, such as `keras_tuner.tuners.Hyperband`; empty for none."""
    home, _, last = name.rpartition(".")
    return last if last in TUNERS and home.partition(".")[0] in PACKAGES else ""
