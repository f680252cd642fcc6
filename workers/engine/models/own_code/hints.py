"""Names the remedy for errors that code of users often meets here."""

import re

CLASS_NUMBERS = (
    "targets are class numbers for a sparse loss and for a loss of your own, and one number for each class "
    "for categorical_crossentropy: leave out to_categorical and argmax in fit, and use keras.ops.one_hot in "
    "a loss of your own"
)
COLUMN = (
    "the targets of two classes, and those that are numbers, have the shape (rows, 1) and are float32: use "
    "np.ravel(y), and np.ravel(y).astype(int) for classes"
)
STATEFUL = "batches have any number of rows here, so use stateful=False"
SHAPE = (
    "the model must take the rows as they are: crop, resize or reshape them inside of it, for example by "
    "keras.layers.CenterCrop, Resizing or Flatten, or by a function preprocess(x) in the same file; a step "
    "in fit is no part of the saved model"
)
HINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"No module named '(tensorflow|tf_keras)\b"),
        "TensorFlow is not installed: use `import keras` and `from keras import layers`, or press Keep the "
        "definitions on the page of the code, which changes such imports",
    ),
    (
        re.compile(r"No module named '(?P<package>[\w-]+)"),
        "{package} is not installed: list its package in requirements.txt of the code",
    ),
    (
        re.compile(r"A `Choice` can contain only.*types \{<class '(int|float)'>, <class '(int|float)'>\}"),
        "write all of these numbers with a point: 0.0 instead of 0",
    ),
    (
        re.compile(r"A `Choice` can contain only|`Fixed` value must be"),
        "for None or a list, use a text and look its value up in the code: "
        "{{'none': None, '16': 16}}[hp.Choice('size', ['none', '16'])]",
    ),
    (re.compile(r"'dict_(keys|values)' object is not subscriptable"), "give hp.Choice a list: list(options)"),
    (
        re.compile(r"truth value of an array with more than one element is ambiguous"),
        "if the array has the values of hp.Choice, give a list: values.tolist()",
    ),
    (re.compile(r"object too deep for desired array|Cannot cast array data from dtype\('float32'\)"), COLUMN),
    (re.compile(r"Arguments `target` and `output` must have the same (shape|rank)"), CLASS_NUMBERS),
    (re.compile(r"axis 1 is out of bounds for array of dimension 1"), CLASS_NUMBERS),
    (
        re.compile(r"Triggering __jax_array__\(\)"),
        "the method result of a metric returns its variable: return keras.ops.convert_to_tensor(self.total), "
        "with the name of your variable",
    ),
    (
        re.compile(r"\[JAX RNG\]"),
        "random numbers in a layer need a seed: write self.seeds = keras.random.SeedGenerator() in __init__, "
        "and pass seed=self.seeds",
    ),
    (re.compile(r"`?stateful=True`? in a RNN|RNN is stateful"), STATEFUL),
    (re.compile(r"is incompatible with the layer: expected (shape|axis|min_ndim|ndim)"), SHAPE),
)
"""The first that matches an error's text is used."""


def hint_for(message: str) -> str:
    """Return the remedy for an error, to be added to its text; empty if none is known."""
    for pattern, hint in HINTS:
        if (match := pattern.search(message)) is not None:
            return f"; {hint.format(**match.groupdict())}"
    return ""
