"""The `fit` of a HyperModel class gets what KerasTuner passes, and may set arguments itself."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code import dry_built
from tests.engine.models.test_own_code_training import spec, trained, trial
from tests.present import present
from workers.engine.errors import CodeFailure
from workers.engine.training import fit_arguments

CLASS = (
    own_code.IMPORTS
    + """
class Tuned(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([layers.Dense(hp.Int("units", 4, 8), activation="relu"), layers.Dense(3)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
        return model

"""
)


def with_fit(signature: str, *lines: str) -> str:
    """Return a class whose `fit` has these lines."""
    return CLASS + "\n".join(
        [f"    def fit(self, hp, model, {signature}):", *(f"        {s}" for s in lines)]
    )


REPORTS_ARGUMENTS = """model.fit(*args, **kwargs)
        return {"val_size": kwargs["batch_size"], "val_epochs": kwargs["epochs"]}"""
VALUE = "min(model.fit(x, y, verbose=0, **kwargs).history['val_loss'])"

FITS = {
    "passes everything on": ("*args, **kwargs", ["return model.fit(*args, **kwargs)"], ()),
    "searches the epochs": (
        "*args, **kwargs",
        ["return model.fit(*args, epochs=hp.Int('epochs', 2, 3), **kwargs)"],
        ("epochs",),
    ),
    "searches the size of a batch": (
        "*args, **kwargs",
        ["return model.fit(*args, batch_size=hp.Choice('batch_size', [16, 32]), **kwargs)"],
        ("batch_size",),
    ),
    "multiplies the epochs": (
        "*args, **kwargs",
        ["epochs = kwargs.pop('epochs')", "return model.fit(*args, epochs=2 * epochs, **kwargs)"],
        (),
    ),
    "takes the epochs by name": (
        "x, y, epochs, **kwargs", ["return model.fit(x, y, epochs=epochs + 1, **kwargs)"], (),
    ),
    "takes no further arguments": (
        "x, y, validation_data, callbacks",
        ["return model.fit(x, y, epochs=2, validation_data=validation_data, callbacks=callbacks)"],
        ("batch_size", "epochs", "shuffle"),
    ),
    "sets its own in a copy": (
        "*args, **kwargs",
        ["options = {**kwargs}", "return model.fit(*args, shuffle=hp.Boolean('shuffle'), **options)"],
        ("shuffle",),
    ),
    "keeps its own validation rows": (
        "x, y, **kwargs",
        ["return model.fit(x[:60], y[:60], validation_data=(x[60:], y[60:]), **kwargs)"],
        ("validation_data",),
    ),
    "returns a number": ("x, y, **kwargs", [f"return {VALUE}"], ()),
    "returns numbers by name": ("x, y, **kwargs", [f"return {{'val_loss': {VALUE}, 'val_other': 1}}"], ()),
    "returns the mean of several fits": (
        "*args, **kwargs", ["return [model.fit(*args, **kwargs) for _ in range(2)]"], (),
    ),
    "keeps the callbacks": (
        "*args, **kwargs", ["kwargs['callbacks'] = []", "return model.fit(*args, **kwargs)"], (),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


RUN = ("searches the size of a batch", "takes no further arguments", "returns a number")
"""Those that run in the first tier; `tests/engine/long_trainings` runs the others."""


@pytest.mark.parametrize("case", FITS)
def test_a_dry_build_finds_what_a_fit_replaces(tmp_path: Path, case: str) -> None:
    signature, lines, replaced = FITS[case]
    assert dry_built(tmp_path, with_fit(signature, *lines), "Tuned").replaced == replaced


@pytest.mark.parametrize("case", RUN)
def test_a_fit_runs_as_under_kerastuner(tmp_path: Path, iris: DatasetFile, case: str) -> None:
    signature, lines, _ = FITS[case]
    text = with_fit(signature, *lines)
    result, report = trial(tmp_path, text, "Tuned", iris, fit={"epochs": 2})
    assert [args for args, _ in report.of("trial_finished") if args] == []
    assert 0 < result["trials"][0]["score"] < 3


def test_a_fit_gets_the_batch_size_and_the_epochs_of_the_experiment(
    tmp_path: Path, iris: DatasetFile
) -> None:
    text = with_fit("*args, **kwargs", REPORTS_ARGUMENTS)
    objectives = [{"metric": "val_size", "direction": "max"}, {"metric": "val_epochs", "direction": "max"}]
    result, _ = trial(
        tmp_path, text, "Tuned", iris, metric="val_size", direction="max",
        fit={"epochs": 3, "batch_size": 24}, search={"objectives": objectives},
    )  # fmt: skip
    metrics = result["trials"][0]["executions"][0]["metrics"]
    assert (metrics["val_size"], metrics["val_epochs"]) == (24, 3)


def test_a_fit_of_a_search_of_an_earlier_release_gets_no_batch_size(
    tmp_path: Path, iris: DatasetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    result_of_fit = "{'val_loss': 1.0, 'val_given': float('batch_size' in kwargs)}"
    text = with_fit("*args, **kwargs", "model.fit(*args, **kwargs)", f"return {result_of_fit}")

    def given() -> float:
        result, _ = trial(tmp_path, text, "Tuned", iris, fit={"epochs": 2})
        return float(result["trials"][0]["executions"][0]["metrics"]["val_given"])

    assert given() == 1.0
    code_in = own_code.code_in
    earlier = {"passes_batch_size": False}
    monkeypatch.setattr(own_code, "code_in", lambda *a: code_in(*a).model_copy(update=earlier))
    assert given() == 0.0


@pytest.mark.parametrize("end", ["return model.fit(*args, **kwargs)", "raise ValueError('no')"])
def test_what_a_fit_asks_for_and_the_search_lacks_is_reported_also_if_it_fails(
    tmp_path: Path, iris: DatasetFile, end: str
) -> None:
    text = with_fit("*args, **kwargs", "hp.Float('weight', 0.0, 1.0)", end)
    units = {"name": "units", "kind": "int", "min": 4, "max": 8}
    search = {"objective": {"metric": "val_loss", "direction": "min"}, "space": [units]}
    _, report = trial(tmp_path, text, "Tuned", iris, fit={"epochs": 1}, search=search)
    (((rows, values, refused), _),) = report.of("declared")
    assert ([row.name for row in rows], values, refused) == (["weight"], {"weight": 0.0}, {})


def test_a_build_that_fails_has_reported_its_hyperparameters(tmp_path: Path, iris: DatasetFile) -> None:
    fails = "        if hp.Choice('kind', ['bad', 'good']) == 'bad':\n            raise ValueError\n"
    text = with_fit("*args, **kwargs", "return model.fit(*args, **kwargs)")
    text = text.replace("        loss =", f"{fails}        loss =")
    units = {"name": "units", "kind": "int", "min": 4, "max": 8}
    search = {"objective": {"metric": "val_loss", "direction": "min"}, "space": [units]}
    _, report = trial(tmp_path, text, "Tuned", iris, search=search)
    (((rows, values, _), _),) = report.of("declared")
    assert ([row.name for row in rows], values) == (["kind"], {"kind": "bad"})
    (((error,), _),) = report.of("trial_finished")
    assert isinstance(error, CodeFailure)


def failure(folder: Path, text: str, iris: DatasetFile, **parts: Any) -> str:
    _, report = trial(folder, text, "Tuned", iris, **parts)
    ((error,),) = [args for args, _ in report.of("trial_finished")]
    assert isinstance(error, CodeFailure)
    return str(error)


def test_values_of_training_rows_are_no_objective_of_validation_rows(
    tmp_path: Path, iris: DatasetFile
) -> None:
    text = with_fit("x, y, validation_data, **kwargs", "return model.fit(x, y, **kwargs)")
    built = dry_built(tmp_path / "dry", text, "Tuned")
    assert built.measures_all and "val_accuracy" not in built.metrics
    message = failure(tmp_path, text, iris, metric="val_accuracy", direction="max")
    assert "fit measured accuracy, loss, but the objective is val_accuracy; pass validation_data" in message


def test_each_of_several_objectives_has_to_be_measured(tmp_path: Path, iris: DatasetFile) -> None:
    text = with_fit("*args, **kwargs", "return model.fit(*args, **kwargs)")
    objectives = [{"metric": "val_loss", "direction": "min"}, {"metric": "val_f2", "direction": "max"}]
    assert "the objective is val_f2" in failure(tmp_path, text, iris, search={"objectives": objectives})


SCORED = (
    "passes everything on",
    "searches the epochs",
    "multiplies the epochs",
    "returns the mean of several fits",
    "keeps its own validation rows",
)


@pytest.mark.parametrize("case", ["multiplies the epochs"])
def test_the_score_is_that_of_kerastuner(tmp_path: Path, iris: DatasetFile, case: str) -> None:
    import keras_tuner

    from workers.engine.data.dataset import load_dataset

    signature, lines, replaced = FITS[case]
    text = with_fit(signature, *lines).replace(
        "model = keras.Sequential([",
        "keras.utils.set_random_seed(5)\n        model = keras.Sequential([keras.Input((4,)), ",
    )
    given = {"epochs": 3, "batch_size": 20, "shuffle": False}
    result, _ = trial(tmp_path, text, "Tuned", iris, fit=given)
    code = own_code.code_in(tmp_path / "code", text)
    dataset = load_dataset(iris, present(spec(code, "Tuned").data))
    (x, y), validation = (
        (dataset.x[rows], dataset.y[rows]) for rows in (dataset.parts.train, dataset.parts.validation)
    )
    scope: dict[str, Any] = {}
    exec(text, scope)
    default = keras_tuner.HyperParameters()
    default.Fixed("units", 4)
    tuner = keras_tuner.RandomSearch(
        scope["Tuned"](), objective="val_loss", max_trials=1, hyperparameters=default,
        tune_new_entries=False, directory=tmp_path,
    )  # fmt: skip
    arguments = {**given, "validation_data": validation}
    tuner.search(x, y, verbose=0, **{k: v for k, v in arguments.items() if k not in replaced})
    assert result["trials"][0]["score"] == pytest.approx(tuner.oracle.get_best_trials()[0].score, rel=1e-4)


@pytest.mark.parametrize("callbacks", ["passed on", "kept"])
def test_values_of_training_rows_of_another_model_are_no_objective(
    tmp_path: Path, iris: DatasetFile, callbacks: str
) -> None:
    text = with_fit(
        "x, y, validation_data, **kwargs",
        *(["kwargs['callbacks'] = []"] if callbacks == "kept" else []),
        "other = keras.Sequential([layers.Dense(3, activation='softmax')])",
        "other.compile('adam', 'sparse_categorical_crossentropy', metrics=['accuracy'])",
        "return other.fit(x, y, **kwargs)",
    ).replace('        model.compile("adam", loss, metrics=["accuracy"])\n', "")
    assert "val_accuracy" not in dry_built(tmp_path / "dry", text, "Tuned").metrics
    assert "but the objective is val_accuracy" in failure(
        tmp_path, text, iris, metric="val_accuracy", direction="max"
    )


WITHOUT_CALLBACKS = with_fit(
    "*args, **kwargs",
    "kwargs['callbacks'] = []",
    "history = model.fit(*args, **kwargs)",
    "history.history['val_loss'] = [0.5, 0.1, 0.4, 0.6]",
    "return history",
)


def test_a_model_whose_best_weights_are_not_known_has_the_values_of_its_last_epoch(
    tmp_path: Path, iris: DatasetFile
) -> None:
    result, report, _ = trained(tmp_path, WITHOUT_CALLBACKS, "Tuned", iris)
    assert (result["best_epoch"], result["score"]) == (4, 0.6)
    assert report.warnings == ["callbacks_not_passed_on"]


def test_a_trial_counts_by_its_best_epoch_even_if_its_callbacks_are_not_passed_on(
    tmp_path: Path, iris: DatasetFile
) -> None:
    result, report = trial(tmp_path, WITHOUT_CALLBACKS, "Tuned", iris)
    assert result["trials"][0]["score"] == 0.1
    assert not report.of("warning")


def test_a_number_that_is_returned_after_training_on_all_rows_is_no_validation_loss(
    tmp_path: Path, iris: DatasetFile
) -> None:
    text = with_fit("x, y, **kwargs", "kwargs['callbacks'] = []", f"return {VALUE}")
    _, report, _ = trained(tmp_path, text, "Tuned", iris)
    assert "retrain_objective" in report.names and "retrain_val_loss" not in report.names


def test_the_fit_of_keras_is_not_searched_for_hyperparameters(tmp_path: Path) -> None:
    text = own_code.SEARCH_OF_LAYERS
    compiled = dry_built(tmp_path / "compiled", text)
    eager = dry_built(tmp_path / "eager", text.replace('["accuracy"],', '["accuracy"], run_eagerly=True,'))
    assert eager.one_call and not compiled.one_call
    assert eager.builds == compiled.builds + 1


@pytest.mark.parametrize(
    ("lines", "replaced"),
    [
        (["kwargs['epochs'] = hp.Int('epochs', 2, 3)", "return model.fit(*args, **kwargs)"], {"epochs"}),
        (["kwargs.update(epochs=2, verbose=0)", "return model.fit(*args, **kwargs)"], {"epochs"}),
        (["kwargs.update({'batch_size': 8})", "return model.fit(*args, **kwargs)"], {"batch_size"}),
        (["return model.fit(*args, **{**kwargs, 'epochs': 2})"], {"epochs"}),
        # The value that is passed counts, wholly or in a branch.
        (["return model.fit(*args, **{'epochs': 2, **kwargs})"], set()),
        (["kwargs['epochs'] *= 2", "return model.fit(*args, **kwargs)"], set()),
        (["kwargs['epochs'] = kwargs['epochs'] + 1", "return model.fit(*args, **kwargs)"], set()),
        (["if 'epochs' not in kwargs:", "    kwargs['epochs'] = 2", "return model.fit(**kwargs)"], set()),
        (["if hp.Boolean('long'):", "    kwargs['epochs'] = 9", "return model.fit(*args, **kwargs)"], set()),
    ],
)  # fmt: skip
def test_arguments_that_a_fit_writes_over_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], replaced: set[str]
) -> None:
    hypermodel = imported(tmp_path, monkeypatch, with_fit("*args, **kwargs", *lines))
    assert fit_arguments.replaced(hypermodel) == replaced
    # A value that the code writes over may be passed.
    given = {"epochs": 5, "batch_size": 4}
    assert fit_arguments.accepted(hypermodel, given) == given


def test_a_class_inside_a_block_may_have_texts_that_begin_at_the_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, body = with_fit("*args, **kwargs", "return model.fit(*args, epochs=2, **kwargs)").split("class ")
    lines = [f"    class {body}", '    text = """', ""]
    block = "\n    ".join("\n".join(lines).splitlines())
    text = f'{head}if True:\n{block}\nAt the margin.\n"""\n'
    assert fit_arguments.replaced(imported(tmp_path, monkeypatch, text)) == {"epochs"}


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    """Return an object of the class in a text, which is imported from a file."""
    name = f"tuned_{folder.name}"
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return importlib.import_module(name).Tuned()


COPIES = with_fit(
    "x, y, validation_data, callbacks=None, **kwargs",
    "copy = keras.models.clone_model(model)",
    "copy.compile('adam', model.loss, metrics=['accuracy'])",
    "return copy.fit(x, y, validation_data=validation_data, verbose=0, **kwargs)",
)


def test_a_fit_that_trains_a_copy_is_named_since_its_model_would_be_saved_untrained(
    tmp_path: Path, iris: DatasetFile
) -> None:
    assert any(
        "model that is saved is not trained" in note for note in dry_built(tmp_path, COPIES, "Tuned").notes
    )
    _, report, _ = trained(tmp_path / "copy", COPIES, "Tuned", iris)
    assert "not_trained" in report.warnings
    _, report, _ = trained(tmp_path / "own", COPIES.replace("copy.fit", "model.fit"), "Tuned", iris)
    assert "not_trained" not in report.warnings
