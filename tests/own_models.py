"""Models of classes of users, as Keras' guides write them: subclasses, lazy layers, own steps, own losses."""

from typing import NamedTuple

from tests.own_code import IMPORTS

HEAD = IMPORTS + "import jax\nfrom keras import ops\n\n\n"


class OwnModel(NamedTuple):
    """Code with a function `build_model`, and the objective that it is trained for."""

    text: str
    objective: tuple[str, str] = ("val_accuracy", "max")


def _of(body: str, returned: str, compiled: str | None, **parts: tuple[str, str]) -> OwnModel:
    compiling = "" if compiled is None else f"    model.compile({compiled})\n"
    entry = f"\n\ndef build_model(hp):\n    model = {returned}\n{compiling}    return model\n"
    return OwnModel(HEAD + body.strip() + entry, **parts)


_NET = """
class Net(keras.Model):
    def __init__(self, units=16, **kwargs):
        super().__init__(**kwargs)
        self.hidden = layers.Dense(units, activation="relu")
        self.drop = layers.Dropout(0.1)
        self.classes = layers.Dense(3{activation})

    def call(self, x{argument}):
        return self.classes(self.drop(self.hidden(x){passed}))
"""
_PLAIN_NET = _NET.format(activation=', activation="softmax"', argument="", passed="")
_LOGITS_NET = _NET.format(activation="", argument="", passed="")
_NEW = "Net(hp.Int('units', 8, 24, step=8))"
_LOSS = "optimizer='adam', loss='sparse_categorical_crossentropy', metrics=['accuracy']"

_LAZY_LAYER = """
class Linear(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="glorot_uniform")
        self.b = self.add_weight(shape=(self.units,), initializer="zeros")

    def call(self, x):
        return ops.matmul(x, self.w) + self.b


class Net(keras.Model):
    def __init__(self, units=8, **kwargs):
        super().__init__(**kwargs)
        self.hidden = Linear(units)
        self.classes = Linear(3)

    def call(self, x):
        return ops.softmax(self.classes(ops.relu(self.hidden(x))))
"""

_LAZY_WEIGHTS = """
class Net(keras.Model):
    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], 3), name="w")
        self.built = True

    def call(self, x):
        return ops.softmax(ops.matmul(x, self.w))
"""

_LAZY_SUBLAYERS = """
class Net(keras.Model):
    def build(self, input_shape):
        self.hidden = layers.Dense(8, activation="relu")
        self.classes = layers.Dense(3, activation="softmax", dtype="float32")
        self.built = True

    def call(self, x):
        x = self.hidden(x)
        return self.classes(x)
"""

_NESTED = """
class Inner(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.blocks = [keras.Sequential([layers.Dense(units), layers.BatchNormalization()]) for _ in range(2)]
        self.heads = {"classes": layers.Dense(3)}

    def call(self, x, training=False):
        for block in self.blocks:
            x = block(x, training=training)
        return self.heads["classes"](x)


class Net(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.inner = Inner(units)
        self.probabilities = layers.Activation("softmax")

    def call(self, x, training=None):
        return self.probabilities(self.inner(x, training=training))
"""

_ADDED_LOSS = """
class Net(keras.Model):
    def __init__(self, latent):
        super().__init__()
        self.mean, self.variance = layers.Dense(latent), layers.Dense(latent)
        self.classes = layers.Dense(3, activation="softmax")

    def call(self, x, training=None):
        mean, variance = self.mean(x), self.variance(x)
        self.add_loss(-0.5 * ops.mean(variance - ops.square(mean) - ops.exp(variance) + 1))
        if training:
            mean = mean + ops.exp(0.5 * variance) * keras.random.normal(ops.shape(mean), seed=1)
        return self.classes(mean)
"""

_PARTS = """
def preprocess(x):
    return {"a": x[:, :2], "b": x[:, 2:]}


class Net(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = layers.Dense(8, activation="relu")
        self.classes = layers.Dense(3, activation="softmax")

    def call(self, inputs):
        return self.classes(ops.concatenate([self.hidden(inputs["a"]), inputs["b"]], axis=-1))
"""

_TWO_INPUTS = """
def preprocess(x):
    return {"a": x[:, :2], "b": x[:, 2:]}


def make():
    a, b = keras.Input((2,), name="a"), keras.Input((2,), name="b")
    classes = layers.Dense(3, activation="softmax")
    return keras.Model({"a": a, "b": b}, classes(layers.concatenate([a, b])))
"""

_OWN_LOSS = """
class CustomModel(keras.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        loss = ops.mean(keras.losses.sparse_categorical_crossentropy(y, y_pred))
        self.loss_tracker.update_state(loss)
        return loss

    @property
    def metrics(self):
        return [self.loss_tracker]


def make():
    inputs = keras.Input((4,))
    x = layers.Dense(16, activation="relu")(inputs)
    return CustomModel(inputs, layers.Dense(3, activation="softmax")(x))
"""

_MORE_METRICS = """
class Net(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.classes = layers.Dense(3, activation="softmax")

    def call(self, x):
        return self.classes(x)

    def get_metrics_result(self):
        found = super().get_metrics_result()
        return {**found, "error": 1 - found["accuracy"]}
"""

_OWN_STEP = """
class CustomModel(keras.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        self.loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def compute_loss_and_updates(
        self, trainable_variables, non_trainable_variables, x, y, training=False
    ):
        y_pred, non_trainable_variables = self.stateless_call(
            trainable_variables, non_trainable_variables, x, training=training
        )
        return self.loss_fn(y, y_pred), (y_pred, non_trainable_variables)

    def train_step(self, state, data):
        trainable_variables, non_trainable_variables, optimizer_variables, metrics_variables = state
        x, y = data
        grad_fn = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, (y_pred, non_trainable_variables)), grads = grad_fn(
            trainable_variables, non_trainable_variables, x, y, training=True
        )
        trainable_variables, optimizer_variables = self.optimizer.stateless_apply(
            optimizer_variables, grads, trainable_variables
        )
        count = len(self.loss_tracker.variables)
        losses = self.loss_tracker.stateless_update_state(metrics_variables[:count], loss)
        hits = self.accuracy.stateless_update_state(metrics_variables[count:], y, y_pred)
        logs = {
            "loss": self.loss_tracker.stateless_result(losses),
            "accuracy": self.accuracy.stateless_result(hits),
        }
        state = trainable_variables, non_trainable_variables, optimizer_variables, losses + hits
        return logs, state

    @property
    def metrics(self):
        return [self.loss_tracker, self.accuracy]


def make():
    inputs = keras.Input((4,))
    return CustomModel(inputs, layers.Dense(3)(layers.Dense(16, activation="relu")(inputs)))
"""
_OWN_STEP_WITH_LOSS = """
class CustomModel(keras.Model):
    def compute_loss_and_updates(
        self, trainable_variables, non_trainable_variables, x, y, sample_weight, training=False
    ):
        y_pred, non_trainable_variables = self.stateless_call(
            trainable_variables, non_trainable_variables, x, training=training
        )
        return self.compute_loss(x, y, y_pred, sample_weight), (y_pred, non_trainable_variables)

    def train_step(self, state, data):
        trainable_variables, non_trainable_variables, optimizer_variables, metrics_variables = state
        x, y, sample_weight = data if len(data) == 3 else (*data, None)
        grad_fn = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, (y_pred, non_trainable_variables)), grads = grad_fn(
            trainable_variables, non_trainable_variables, x, y, sample_weight, training=True
        )
        trainable_variables, optimizer_variables = self.optimizer.stateless_apply(
            optimizer_variables, grads, trainable_variables
        )
        updated, logs = [], {}
        for metric in self.metrics:
            values = metrics_variables[len(updated) : len(updated) + len(metric.variables)]
            arguments = (loss,) if metric.name == "loss" else (y, y_pred)
            values = metric.stateless_update_state(values, *arguments)
            logs[metric.name] = metric.stateless_result(values)
            updated += values
        return logs, (trainable_variables, non_trainable_variables, optimizer_variables, updated)


def make():
    inputs = keras.Input((4,))
    x = layers.Dense(16, activation="relu")(inputs)
    return CustomModel(inputs, layers.Dense(3, activation="softmax")(x))
"""
_LOSS_OF_LOGITS = _LOSS.replace(
    "'sparse_categorical_crossentropy'", "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
)

PLAIN = {
    "call with training": _of(
        _NET.format(
            activation=', activation="softmax"', argument=", training=None", passed=", training=training"
        ),
        _NEW,
        _LOSS,
    ),
    "call without training": _of(_PLAIN_NET, _NEW, _LOSS),
    "not compiled": _of(_PLAIN_NET, _NEW, None),
    "not compiled, with logits": _of(_LOGITS_NET, _NEW, None),
    "logits": _of(_LOGITS_NET, _NEW, _LOSS_OF_LOGITS),
    "lazily built layers": _of(_LAZY_LAYER, "Net(hp.Choice('units', [8, 16]))", _LOSS),
    "lazily built weights": _of(_LAZY_WEIGHTS, "Net()", _LOSS),
    "layers created in build": _of(_LAZY_SUBLAYERS, "Net()", _LOSS),
    "models inside a model": _of(_NESTED, "Net(hp.Int('units', 4, 8, step=4))", _LOSS),
    "an added loss": _of(_ADDED_LOSS, "Net(hp.Int('units', 4, 8, step=4))", _LOSS),
    "a dictionary as input": _of(_PARTS, "Net()", _LOSS),
    "two inputs": _of(_TWO_INPUTS, "make()", _LOSS),
}
"""By their form: models that the loops for templates train."""

ONE_CALL = {
    "eager": _of(_PLAIN_NET, _NEW, f"{_LOSS}, run_eagerly=True"),
    "own compute_loss": _of(_OWN_LOSS, "make()", "optimizer='adam'", objective=("val_loss", "min")),
    "more metrics": _of(_MORE_METRICS, "Net()", _LOSS),
    "own train_step": _of(_OWN_STEP, "make()", "optimizer='adam'"),
    "own train_step with a loss": _of(_OWN_STEP_WITH_LOSS, "make()", _LOSS),
    "own train_step behind preprocess": _of(
        _OWN_STEP + "\n\ndef preprocess(x):\n    return (x - 3.0) / 2.0\n", "make()", "optimizer='adam'"
    ),
}
"""By their form: models that Keras' own `fit` trains."""
