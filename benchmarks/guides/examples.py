"""Lists the examples of the guides that are compared."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """An example of a guide.

    Attributes:
        guide: its file below the folder of the guides.
        name: the function, class or variable that ends the pasted lines.
        data: the rows, such as `digits-28`; see `rows`.
        nth: which definition of `name` it is.
        whole: whether the lines that search or train are pasted as well.
        more: lines that a person has to add.
        entry: that an experiment is started with; `name` if it is empty.
        metric, direction: the objective.
        epochs: of each training.
        args: of the class's constructor.
        task: the kind of prediction, if the targets do not show it.
        random: whether a second configuration is drawn from the space.
    """

    guide: str
    name: str
    data: str
    nth: int = 1
    whole: bool = False
    more: str = ""
    entry: str = ""
    metric: str = "val_accuracy"
    direction: str = "max"
    epochs: int = 2
    task: str | None = None
    random: bool = True

    @property
    def label(self) -> str:
        """Name the example."""
        return f"{self.guide.removesuffix('.py')}: {self.name}{f' ({self.nth})' if self.nth > 1 else ''}"


START = "keras_tuner/getting_started.py"
FAILED = "keras_tuner/failed_trials.py"
BUILT_IN = "keras/training_with_built_in_methods.py"
STEPS = "keras/custom_train_step_in_jax.py"
LAYERS = "keras/making_new_layers_and_models_via_subclassing.py"
SAVING = "keras_io/serialization_and_saving.py"
LOSS = {"metric": "val_loss", "direction": "min"}
SPARSE = {"metric": "val_sparse_categorical_accuracy"}

EXAMPLES = (
    Example(START, "build_model", "digits-28"),
    Example(START, "build_model", "digits-28", nth=2),
    Example(START, "build_model", "digits-28", nth=3),
    Example(START, "build_model", "digits-28", nth=4, whole=True),
    Example(START, "MyHyperModel", "digits-28"),
    Example(START, "MyHyperModel", "digits-28", nth=2),
    Example(START, "MyHyperModel", "digits-28", nth=3, whole=True),
    Example(START, "build_regressor", "numbers-10", metric="val_mean_absolute_error", direction="min"),
    Example(START, "build_regressor", "numbers-10", nth=2, whole=True, metric="val_custom_metric",
            direction="min"),
    Example(START, "HyperRegressor", "numbers-10", metric="val_objective", direction="min"),
    Example(START, "HyperRegressor", "numbers-10", nth=2, whole=True, metric="val_metric_a"),
    Example("keras_tuner/tailor_the_search_space.py", "build_model", "digits-28", whole=True),
    Example(FAILED, "build_model", "numbers-20", **LOSS),
    Example(FAILED, "build_model", "numbers-20", nth=2, **LOSS),
    Example(FAILED, "build_model", "numbers-20", nth=3, whole=True, **LOSS),
    Example("keras_tuner/visualize_tuning.py", "build_model", "digits-28", whole=True),
    Example("keras_tuner/distributed_tuning.py", "build_model", "digits-28", whole=True),
    Example("keras_tuner/custom_tuner.py", "MyHyperModel", "digits-28", metric="val_my_metric",
            direction="min"),
    Example("tf/keras_tuner.py", "model_builder", "digits-28", whole=True),
    Example(STEPS, "model", "numbers-32", whole=True, entry="build_model", **LOSS),
    Example(STEPS, "model", "numbers-32", nth=2, whole=True, entry="build_model", **LOSS),
    Example(STEPS, "model", "numbers-32", nth=3, entry="build_model", more="model.fit(x, y)", **LOSS),
    Example(BUILT_IN, "history", "flat-784", entry="build_model", **SPARSE),
    Example(BUILT_IN, "custom_mean_squared_error", "flat-784", whole=True, entry="build_model", **LOSS),
    Example(BUILT_IN, "CustomMSE", "flat-784", whole=True, entry="build_model", **LOSS),
    Example(BUILT_IN, "CategoricalTruePositives", "flat-784", whole=True, entry="build_model",
            metric="val_categorical_true_positives"),
    Example(BUILT_IN, "ActivityRegularizationLayer", "flat-784", whole=True, entry="build_model", **LOSS),
    Example(BUILT_IN, "class_weight", "flat-784", whole=True, entry="build_model", **SPARSE),
    Example(BUILT_IN, "sample_weight", "flat-784", whole=True, entry="build_model", **SPARSE),
    Example(BUILT_IN, "LossHistory", "flat-784", whole=True, entry="build_model", **SPARSE),
    Example(LAYERS, "OuterLayerWithKernelRegularizer", "numbers-3", whole=True, entry="build_model", **LOSS),
    Example(LAYERS, "vae", "autoencoder-784", whole=True, entry="build_vae", **LOSS),
    Example("keras/functional_api.py", "history", "flat-784", entry="build_model"),
    Example("keras/writing_your_own_callbacks.py", "model", "flat-784", whole=True, entry="build_model",
            task="regression", **LOSS),
    Example("keras/transfer_learning.py", "model", "numbers-3", nth=2, whole=True, entry="build_model",
            **LOSS),
    Example("keras/writing_a_custom_training_loop_in_jax.py", "model", "flat-784",
            more="model.compile('adam', loss_fn, metrics=['accuracy'])\nmodel.fit(x_train, y_train)",
            entry="build_model"),
    Example("keras/understanding_masking_and_padding.py", "outputs", "codes-20", nth=2,
            more="model = keras.Model(inputs, layers.Dense(1, activation='sigmoid')(outputs))\n"
            "model.compile('adam', 'binary_crossentropy', metrics=['accuracy'])\n"
            "model.fit(padded_inputs, [1])",
            entry="build_model"),
    Example("keras_io/customizing_saving_and_serialization.py", "model", "four-8", nth=9, whole=True,
            entry="build_model", **LOSS),
    Example(SAVING, "get_model", "numbers-32", whole=True, entry="build_model", **LOSS),
    Example(SAVING, "get_model", "numbers-4", nth=2,
            more="model = get_model()\nmodel.fit(test_input, test_target)", entry="build_model", **LOSS),
    Example("keras_io/intro_to_keras_for_engineers.py", "MyModel", "digits-28", whole=True,
            entry="build_model", metric="val_acc", epochs=1),
)  # fmt: skip
