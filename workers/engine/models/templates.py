"""Our model templates: from normalized input to the features that the head reads.

Layer names are fixed (`dense_1`, `conv_2`, `output` …), since layout rules and precision overrides
name them; `jobs.contracts.variables` lists the same variables without Keras. Every layer is a built-in
one, so any process loads the saved model in safe mode. Each seed is derived from the run's seed and
the layer's name, so equal runs start equal in any process, however warm.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

from jobs.contracts.base import Frozen
from jobs.contracts.model import CnnArgs, LinearArgs, MlpArgs
from jobs.contracts.precision import PrecisionSpec
from jobs.contracts.profile import Profile
from workers.engine.errors import BadSpec
from workers.engine.models.initializers import HostGlorot, draw
from workers.engine.models.precision import policy_of
from workers.engine.models.width_padding import Widths, padded


@dataclass(frozen=True)
class Site:
    """What every layer of one model has in common."""

    seed: int
    precision: PrecisionSpec
    profile: Profile

    def named(self, name: str) -> dict[str, Any]:
        """Return the name and dtype arguments of the layer `name`."""
        return {"name": name, "dtype": policy_of(name, self.precision)}

    def seed_of(self, name: str) -> int:
        """Return the seed of the layer `name`."""
        return zlib.crc32(f"{self.seed}/{name}".encode())

    def weights(self, name: str) -> dict[str, Any]:
        """Return the arguments of a layer that has a kernel: Glorot's uniform start, seeded."""
        return {**self.named(name), "kernel_initializer": HostGlorot(seed=self.seed_of(name))}


def mlp(site: Site, args: MlpArgs, x: Any) -> Any:
    """Flatten → `layers` × (Dense → batch norm? → activation → dropout?)."""
    x = _flat(site, x)
    for i in range(1, args.layers + 1):
        x = _dense_block(site, i, x, args)
    return x


def cnn(site: Site, args: CnnArgs, x: Any) -> Any:
    """`layers` × (Conv → activation → pool while there is something to pool) → flatten → Dense block.

    Raises:
        BadSpec: the data are not images.
    """
    if site.profile.kind != "image":
        raise BadSpec("the cnn template takes images; these data are vectors: use mlp or linear")
    for i in range(1, args.layers + 1):
        name = f"conv_{i}"
        x = keras.layers.Conv2D(args.filters, args.kernel, padding="same", **site.weights(name))(x)
        x = keras.layers.Activation(args.activation, **site.named(f"conv_activation_{i}"))(x)
        if min(x.shape[1:3]) >= 2:
            x = keras.layers.MaxPooling2D(2, **site.named(f"pool_{i}"))(x)
    return _dense_block(site, 1, _flat(site, x), args)


def linear(site: Site, args: LinearArgs, x: Any) -> Any:  # noqa: ARG001  its penalty sits on the head
    """Nothing between the normalized input and the head."""
    return _flat(site, x)


TEMPLATES: dict[type, Callable[[Site, Any, Any], Any]] = {MlpArgs: mlp, CnnArgs: cnn, LinearArgs: linear}


def _flat(site: Site, x: Any) -> Any:
    return keras.layers.Flatten(**site.named("flatten"))(x) if len(x.shape) > 2 else x


def _dense_block(site: Site, i: int, x: Any, args: MlpArgs | CnnArgs) -> Any:
    # batch normalization takes a bias away again: its gradient is rounding noise, which Adam blows up
    normalizes = isinstance(args, MlpArgs) and args.batch_norm
    x = keras.layers.Dense(args.units, use_bias=not normalizes, **site.weights(f"dense_{i}"))(x)
    if normalizes:
        x = keras.layers.BatchNormalization(**site.named(f"batch_norm_{i}"))(x)
    x = keras.layers.Activation(args.activation, **site.named(f"activation_{i}"))(x)
    if args.dropout:
        name = f"dropout_{i}"
        x = keras.layers.Dropout(args.dropout, seed=site.seed_of(name), **site.named(name))(x)
    return x


def start_anew(model: Any, site: Site, args: Frozen, widths: Widths) -> None:
    """Give the layers of a built model the kernels, generators and rates that a fresh build would have.

    Args:
        model: built by `build.build` from arguments that differ in rates and penalties alone.
        site: with the seed to start from.
        args: the template's arguments, resolved.
        widths: the shapes that its variables shall have, where it was built wider.
    """
    for layer in model.layers:
        if isinstance(getattr(layer, "kernel_initializer", None), keras.initializers.GlorotUniform):
            start = draw(site.seed_of(layer.name), widths.shape_of(layer.kernel))
            layer.kernel.assign(padded(start, layer.kernel.shape))
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = getattr(args, "dropout", layer.rate)
            layer.seed_generator.state.assign([site.seed_of(layer.name), 0])
        if isinstance(penalty := getattr(layer, "kernel_regularizer", None), keras.regularizers.L2):
            penalty.l2 = getattr(args, "l2", penalty.l2)
