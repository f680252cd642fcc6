"""Models that Keras cannot save, or saves so that they cannot be loaded again."""

from tests.own_code import IMPORTS

_HEAD = IMPORTS + "from keras import ops\n\n\n"
_ENTRY = """

def build_model(hp):
    inputs = keras.Input((4,))
    x = layers.Dense(hp.Int("units", 8, 16, step=8), activation="relu")(inputs)
    x = {layer}(x)
    model = keras.Model(inputs, layers.Dense(3, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""


def _with(layer: str, before: str = "") -> str:
    return _HEAD + before.strip() + _ENTRY.format(layer=layer)


_STEPS = (
    _HEAD
    + "class Stepped(keras.Model):\n    def predict_step(self, state, data):\n"
    + "        outputs, changed = self.stateless_call(*state, data[0])\n        return {step}, changed\n"
    + _ENTRY.format(layer="layers.Dense(8)").replace("keras.Model(inputs", "Stepped(inputs")
)
"""Code of a model with its own prediction step, which returns {step} of the `outputs` by call."""

_DRAWN = "(lambda x: ops.matmul(x, {random}.normal(size=(x.shape[-1], 4)).astype('float32')))"
"""Features that a build draws, which are no weights."""

UNSAVABLE = {
    "an argument that is no value": (
        _with(
            "Around(layers.Dense(8))",
            """
class Around(layers.Layer):
    def __init__(self, inner, factor=np.ones(8), **kwargs):
        super().__init__(**kwargs)
        self.inner, self.factor = inner, factor

    def call(self, x):
        return self.inner(x) * self.factor
""",
        ),
        r"cannot be saved: Around \('around'\).*def get_config\(self\).*'inner': self.inner, 'factor'",
    ),
    "no arguments of the base class": (
        _with(
            "Linear(8)",
            """
class Linear(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], self.units))

    def call(self, x):
        return ops.matmul(x, self.w)
""",
        ),
        r"cannot be loaded again: Linear \('linear'\).*take \*\*kwargs in __init__",
    ),
    "get_config without an argument": (
        _with(
            "Linear(8)",
            """
class Linear(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(units)

    def get_config(self):
        return {"name": self.name}

    def call(self, x):
        return self.dense(x)
""",
        ),
        r"cannot be loaded again: Linear \('linear'\).*missing 1 required .*'units'"
        r".*store in __init__ first: self.units = units, and add: .*'units': self.units",
    ),
    "an argument under a name of its own": (
        _with(
            "Scaled(np.ones(1), np.ones(1))",
            """
class Scaled(layers.Layer):
    def __init__(self, factors, shifts, **kwargs):
        super().__init__(**kwargs)
        self._factors = ops.convert_to_tensor(factors)
        self.shift = ops.convert_to_tensor(shifts)

    def call(self, x):
        return x * self._factors + self.shift
""",
        ),
        r"Scaled \('scaled'\).*first: self.shifts = shifts, and add: .*'factors': self._factors, 'shifts'",
    ),
    "a lambda with a variable of its function": (
        _HEAD
        + "def scaled(factor):\n    return layers.Lambda(lambda x: x * factor)\n"
        + _ENTRY.format(layer="scaled(np.ones(1, np.float32))"),
        r"Lambda \('lambda'\).*Replace the Lambda by a class",
    ),
    "a function inside another": (
        _HEAD
        + "def dense():\n    def half(x):\n        return x / 2\n\n"
        + "    return layers.Dense(8, activation=half)\n"
        + _ENTRY.format(layer="dense()"),
        r"Dense \('dense_1'\).*half.*def at the top level of a file",
    ),
    "a lambda as an activation": (
        _with("layers.Dense(8, activation=lambda x: x / 2)"),
        r"cannot be loaded again: Dense \('dense_1'\): .*: a lambda.*def at the top level",
    ),
    "a class inside a function": (
        _HEAD
        + "def half():\n    class Half(layers.Layer):\n        def call(self, x):\n            return x / 2\n"
        + "\n    return Half()\n"
        + _ENTRY.format(layer="half()"),
        r"Half \('half'\).*Define the class Half at the top level",
    ),
    "a model with weights and arguments": (
        _with(
            "Net(hp.Int('width', 8, 16, step=8))",
            """
class Net(keras.Model):
    def __init__(self, width=8, **kwargs):
        super().__init__(**kwargs)
        self.w = self.add_weight(shape=(width, 3))
        self.dense = layers.Dense(width)

    def call(self, x):
        return ops.matmul(self.dense(x), self.w)
""",
        ),
        r"Net \('net'\): Keras does not store the arguments .*'width': self.width",
    ),
    "new random numbers in each build": (
        _with(_DRAWN.format(random="RANDOM"), "RANDOM = np.random.default_rng()"),
        r"loaded file predicts other values, by .*draw no random numbers .* without a seed",
    ),
    "predictions that are not those of call": (
        _STEPS.format(step="2 * outputs"),
        r"loaded file predicts other values, by .*in the method call, not in predict_step",
    ),
    "predictions with another shape": (
        _STEPS.format(step="ops.argmax(outputs, -1)"),
        r"values of the shape \(64,\), but its file.*\(64, 3\): .*not in predict_step",
    ),
}
"""By the fault: the code, and the pattern of the message."""

SAVABLE = {
    "a loss and a metric of the code": _HEAD
    + "def own_loss(factor):\n    def loss(y, p):\n        return factor * ops.mean(p, axis=-1)\n\n"
    + "    return loss\n"
    + _ENTRY.format(layer="layers.Dense(8)").replace(
        '"sparse_categorical_crossentropy", metrics=["accuracy"]',
        "own_loss(2.0), metrics=[own_loss(1.0)]",
    ),
    "a named function and a lambda without variables": _HEAD
    + "def half(x):\n    return x / 2\n"
    + _ENTRY.format(layer="layers.Lambda(lambda x: x * 2)").replace('activation="relu"', "activation=half"),
    "a dropout that is never off": _with(
        "Kept(0.5)",
        """
class Kept(layers.Dropout):
    def call(self, x, training=False):
        return super().call(x, training=True)
""",
    ),
    "random numbers of the seed": _with(_DRAWN.format(random="np.random")),
    "numbers of 16 bits": _HEAD
    + 'keras.mixed_precision.set_global_policy("mixed_bfloat16")\n'
    + _ENTRY.format(layer="layers.Dense(64)"),
    "logits": _with("layers.Dense(8)")
    .replace('(3, activation="softmax")', "(3)")
    .replace(
        '"sparse_categorical_crossentropy"', "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
    ),
    "an output with a name": _with("layers.Dense(8)").replace(
        'layers.Dense(3, activation="softmax")(x))', '{"y": layers.Dense(3, activation="softmax")(x)})'
    ),
}
