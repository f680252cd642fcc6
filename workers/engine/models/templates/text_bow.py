"""Builds the layers for the template `text_bow`."""

from typing import Any

from jobs.spec.templates.text_bow import TextBowArgs
from workers.engine.models.templates.blocks import dense_block
from workers.engine.models.templates.site import Site


def text_bow(site: Site, args: TextBowArgs, x: Any) -> Any:
    """Return dropout? → (Dense(hidden) → relu → dropout?)? of `x`, (rows, numbers)."""
    if args.dropout:
        x = site.dropout("input_dropout")(x)
    if not args.hidden:
        return x
    return dense_block(site, 1, x, units=args.hidden, activation="relu", dropout=args.dropout)
