"""Builds the layers for the template `mlp`."""

from typing import Any

from jobs.spec.templates.mlp import MlpArgs
from workers.engine.models.templates.blocks import dense_block, flat
from workers.engine.models.templates.site import Site


def mlp(site: Site, args: MlpArgs, x: Any) -> Any:
    """Return flatten → `layers` × (Dense → batch norm? → activation → dropout?) of `x`, (rows, units)."""
    x = flat(site, x)
    for i in range(1, args.layers + 1):
        x = dense_block(
            site,
            i,
            x,
            units=args.units,
            activation=args.activation,
            dropout=args.dropout,
            batch_norm=args.batch_norm,
        )
    return x
