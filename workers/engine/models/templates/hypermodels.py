"""Builds KerasTuner's hypermodels `HyperXception` and `HyperResNet` on a model's input.

KerasTuner builds the network up to its output layer, in whose place `build` puts its own. Its layers are made
again here, with the same names, precision and dropout as in all templates.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras

from jobs.spec.base import Frozen
from jobs.spec.templates.hyper_xception import HyperXceptionArgs
from workers.engine.models.templates.site import Site


def hyper_xception(site: Site, args: HyperXceptionArgs, x: Any) -> Any:
    """Return the features from KerasTuner's `HyperXception` for the images `x`, (rows, features)."""

    def network() -> Any:
        # KerasTuner imports much, and few trainings need it.
        from keras_tuner.src.applications.xception import dense

        body = _without_top("HyperXception", args, x)
        # As its class does before the output layer. It would also make an optimizer, which has variables.
        features = body.output
        for _ in range(args.num_dense_layers):
            features = dense(
                features,
                max(site.profile.outputs, 2),
                activation=args.activation,
                batchnorm=args.dense_use_bn,
                dropout_rate=args.dropout_rate,
            )
        return keras.Model(body.input, features)

    return _on_input(site, x, network)


def hyper_resnet(site: Site, args: Frozen, x: Any) -> Any:
    """Return the features from KerasTuner's `HyperResNet` for the images `x`, (rows, features)."""
    return _on_input(site, x, lambda: _without_top("HyperResNet", args, x))


def _without_top(name: str, args: Frozen, x: Any) -> Any:
    """Return KerasTuner's network up to the pooling, for its hyperparameters' values."""
    import keras_tuner

    hyperparameters = keras_tuner.HyperParameters()
    hyperparameters.values.update(args.model_dump())
    hypermodel = getattr(keras_tuner.applications, name)(include_top=False, input_shape=tuple(x.shape[1:]))
    return hypermodel.build(hyperparameters)


def _on_input(site: Site, x: Any, network: Callable[[], Any]) -> Any:
    """Return the output that layers like a network's have for the input `x`."""

    def built() -> Any:
        with keras.StatelessScope(initialize_variables=False):
            return network()

    # Keras counts the layers of each class and the variables that wait for their values by thread. So the
    # names do not depend on earlier models, and the weights of this network are never allocated.
    with ThreadPoolExecutor(max_workers=1) as thread:
        model = thread.submit(built).result()
    tensors = {id(model.input): x}
    for layer in model.layers[1:]:
        inputs = [tensors[id(tensor)] for tensor in keras.tree.flatten(layer.input)]
        tensors[id(layer.output)] = _made_again(site, layer, inputs if len(inputs) > 1 else inputs[0])
    return tensors[id(model.output)]


def _made_again(site: Site, layer: Any, inputs: Any) -> Any:
    """Return a new layer's output for other inputs; the layer is like `layer`."""
    if isinstance(layer, keras.layers.Lambda):
        return _sum_of_last_axis(site, layer.name, inputs)
    if isinstance(layer, keras.layers.Dropout):
        return site.dropout(layer.name, "dropout_rate")(inputs)
    return type(layer).from_config({**layer.get_config(), **site.named(layer.name)})(inputs)


def _sum_of_last_axis(site: Site, name: str, x: Any) -> Any:
    """Return the sum over the last axis, as the functions in version `next` compute it.

    A saved model with a function could not be loaded in safe mode.
    """
    *shape, terms = x.shape[1:]
    x = keras.layers.Reshape((math.prod(shape), terms), **site.named(f"{name}_terms"))(x)
    x = keras.layers.GlobalAveragePooling1D("channels_first", **site.named(f"{name}_mean"))(x)
    x = keras.layers.Rescaling(float(terms), **site.named(f"{name}_sum"))(x)
    return keras.layers.Reshape(shape, **site.named(name))(x)
