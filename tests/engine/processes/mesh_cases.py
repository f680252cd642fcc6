"""Trainings that a mesh must not change: together they use every metric, loss, optimizer and schedule.

`mesh_equality_child` runs each of them on one device, on 2 × 4 and on 8 × 1.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.own_code import IMPORTS

LOSS = {"metric": "val_loss", "direction": "min"}
HIDDEN = ({"match": "dense_1/kernel", "axes": [None, "model"]},)
OUTPUT = ({"match": "output/kernel", "axes": ["model", None]},)
HIDDEN_OF_CODE = ({"match": "(.*/)?dense/kernel", "axes": [None, "model"]},)
EVERY_CHANGE = {
    "flip": "both", "rotation": 0.1, "zoom": 0.2, "translation": 0.1, "contrast": 0.2, "brightness": 0.2,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One training, or one search with several trials.

    Attributes:
        data: a file of `mesh_equality_child.data_files`.
        template: its name; for own code the entry.
        args: of the template.
        fit: settings beside those of the child.
        layout: the rules on 2 × 4.
        retrain: the second phase of a training; None for none.
        search: the section of a search; None for a training.
        trials: the values of each trial.
        executions: the number of trainings in each trial.
        code: own code that builds the model.
    """

    data: str
    template: str
    args: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    layout: tuple[dict[str, Any], ...] = HIDDEN
    retrain: dict[str, Any] | None = None
    search: dict[str, Any] | None = None
    trials: tuple[dict[str, Any], ...] = ({},)
    executions: int = 1
    code: str = ""


OWN_REGRESSION = (
    IMPORTS
    + """

class Numbers(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([
            keras.Input((4,)), layers.BatchNormalization(), layers.Dense(16, activation="tanh"),
            layers.Dropout(0.1), layers.Dense(1),
        ])
        model.compile(
            optimizer=keras.optimizers.Adam(hp.Float("rate", 0.001, 0.1, default=0.01)), loss="mse",
            metrics=["mae", keras.metrics.RootMeanSquaredError(name="rmse"),
                     keras.metrics.R2Score(name="r2")],
            weighted_metrics=[keras.metrics.MeanSquaredError(name="weighted_mse")],
        )
        return model
"""
)
OWN_LABELS = (
    IMPORTS
    + """

class Net(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(16, activation="relu")
        self.normalization = layers.BatchNormalization()
        self.drop = layers.Dropout(0.1)
        self.out = layers.Dense(3, activation="sigmoid")

    def call(self, x, training=False):
        return self.out(self.drop(self.normalization(self.dense(x)), training=training))


def build_model(hp):
    model = Net()
    model.compile(
        optimizer=keras.optimizers.SGD(hp.Float("rate", 0.001, 1.0, default=0.1), momentum=0.9),
        loss="binary_crossentropy",
        metrics=["binary_accuracy", keras.metrics.AUC(multi_label=True, name="auc"),
                 keras.metrics.Precision(name="precision"), keras.metrics.Recall(name="recall")],
    )
    return model
"""
)
OWN_FIT = (
    IMPORTS
    + """

class Weighted(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([keras.Input((4,)), layers.Dense(16, activation="relu"),
                                  layers.Dropout(0.1), layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.SGD(hp.Float("rate", 0.001, 1.0, default=0.05)), loss="mse",
                      metrics=["mae"], weighted_metrics=["mse"])
        return model

    def fit(self, hp, model, *args, **kwargs):
        return model.fit(*args, **kwargs)
"""
)

RATES = ({"learning_rate": 0.05}, {"learning_rate": 1e-5})
CODE_RATES = ({"rate": 0.05}, {"rate": 0.001})
_MEDIAN = {"kind": "median", "startup_trials": 1, "warmup_epochs": 1}
_FOLDS = {"kind": "k_fold", "folds": 3}
_ROW = {"name": "learning_rate", "kind": "float", "min": 1e-6, "max": 0.5}

CASES: dict[str, Case] = {
    "weights of rows and classes": Case(
        "table", "mlp", {"units": 16, "dropout": 0.2, "batch_norm": True},
        {"class_weights": {"yes": 3.0}, "optimizer": "adamw", "schedule": {"kind": "warmup_cosine"},
         "clipnorm": 1.0, "ema": {"momentum": 0.5}, "loss": "binary_crossentropy"},
    ),
    "early stopping": Case(
        "weighted numbers", "mlp", {"units": 16, "dropout": 0.2},
        {"epochs": 30, "learning_rate": 0.2, "optimizer": "sgd", "loss": "mae",
         "schedule": {"kind": "constant"},
         "early_stopping": {"patience": 2, "min_delta": 0.01}},
    ),
    "labels": Case(
        "labels", "mlp", {"units": 16, "dropout": 0.2, "batch_norm": True},
        {"optimizer": "nadam", "learning_rate": 0.02, "schedule": {"kind": "cosine"}, "clipvalue": 0.5},
    ),
    "plateau": Case(
        "two numbers", "linear", {},
        {"epochs": 8, "optimizer": "rmsprop", "learning_rate": 0.5, "loss": "huber",
         "schedule": {"kind": "reduce_on_plateau", "patience": 1, "min_delta": 0.5}},
        layout=OUTPUT,
        retrain={"patience": 8, "epochs_cap": 8},
    ),
    "augmentation": Case(
        "digits", "cnn", {"filters": 4, "layers": 1, "units": 8, "dropout": 0.2},
        {"augmentation": EVERY_CHANGE, "class_weights": "balanced", "batch_size": 64, "epochs": 2,
         "schedule": {"kind": "exponential"}, "loss": "sparse_categorical_crossentropy"},
    ),
    "residual": Case(
        "digits", "resnet", {"filters": 4, "stages": 2}, {"batch_size": 64, "epochs": 1, "optimizer": "adam"},
        layout=OUTPUT,
    ),
    "hypermodel": Case(
        "digits", "HyperXception",
        {"conv2d_num_filters": 4, "sep_num_filters": 8, "num_residual_blocks": 1, "num_dense_layers": 1,
         "dropout_rate": 0.5, "initial_strides": 4, "activation": "selu"},
        {"batch_size": 64, "epochs": 1, "optimizer": "sgd"},
        layout=({"match": "conv2d/kernel", "axes": [None, None, None, "model"]},),
    ),
    "words": Case(
        "reviews", "text_bow", {"hidden": 8, "dropout": 0.2},
        {"optimizer": "adagrad", "learning_rate": 0.1, "schedule": {"kind": "polynomial"}},
    ),
    "folds": Case(
        "weighted numbers", "mlp", {"units": 8, "dropout": 0.2},
        {"loss": "log_cosh", "optimizer": "lion", "learning_rate": 0.01,
         "schedule": {"kind": "step", "every": 1}},
        search={"evaluation": _FOLDS, "space": [_ROW]}, trials=RATES[:1],
        executions=3,
    ),
    "pruning": Case(
        "weighted numbers", "mlp", {"units": 8, "batch_norm": True},
        {"epochs": 4, "loss": "mse", "schedule": {"kind": "piecewise", "at": [2]}},
        search={"pruner": _MEDIAN, "space": [_ROW]}, trials=RATES,
    ),
    "restarts": Case(
        "table", "linear", {}, {"schedule": {"kind": "cosine_restarts", "first_epochs": 1},
                                "global_clipnorm": 0.5, "batch_size": 16},
        layout=(),
    ),
    "code with weights": Case(
        "weighted numbers", "Numbers", code=OWN_REGRESSION, layout=HIDDEN_OF_CODE, trials=CODE_RATES,
        search={"pruner": _MEDIAN, "space": []}, fit={"epochs": 4},
    ),
    "subclass stops early": Case(
        "labels", "build_model", code=OWN_LABELS, layout=HIDDEN_OF_CODE,
        fit={"epochs": 30, "early_stopping": {"patience": 1}},
    ),
    "subclass with folds": Case(
        "labels", "build_model", code=OWN_LABELS, layout=HIDDEN_OF_CODE,
        search={"evaluation": _FOLDS, "space": []}, executions=3,
    ),
    "own fit with folds": Case(
        "weighted numbers", "Weighted", code=OWN_FIT, layout=HIDDEN_OF_CODE,
        search={"evaluation": _FOLDS, "space": []}, executions=3,
    ),
    "own fit is pruned": Case(
        "weighted numbers", "Weighted", code=OWN_FIT, layout=HIDDEN_OF_CODE, trials=CODE_RATES,
        search={"pruner": _MEDIAN, "space": []}, fit={"epochs": 4},
    ),
    "own fit stops early": Case(
        "weighted numbers", "Weighted", code=OWN_FIT, layout=HIDDEN_OF_CODE, search={"space": []},
        fit={"epochs": 30, "early_stopping": {"patience": 1, "min_delta": 0.001}},
    ),
}  # fmt: skip
