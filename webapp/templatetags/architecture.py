"""Template tags that show a model's layers."""

from typing import Any

from django import template

from jobs.spec.signature import Shape
from webapp.report_figures.architecture import Box
from webapp.templatetags import words

register = template.Library()
NAME, DETAIL = 26, 32
"""Maximum number of characters in the first line of a box, and in the others."""


@register.filter
def shape(sizes: Shape | None) -> str:
    """Show a tensor's shape, such as `rows × 28 × 28`."""
    if sizes is None:
        return words.NONE
    first, *rest = sizes or (1,)
    # Only the first axis is that of the rows; others of unknown size have any.
    names = [
        "rows" if first is None else str(first),
        *("any" if size is None else str(size) for size in rest),
    ]
    return " × ".join(names)


@register.filter
def shapes(sizes: tuple[Shape, ...]) -> str:
    """Show several tensors' shapes."""
    return ", ".join(map(shape, sizes)) or words.NONE


@register.filter
def box_name(box: Box) -> str:
    """Return a box's name: its layer's name, or how often its block is repeated."""
    if box.kind != "block":
        return box.title
    return f"{box.number} × {box.detail or f'block of {box.period} layers'}"


@register.inclusion_tag("components/architecture_box.html")
def architecture_box(box: Box) -> dict[str, Any]:
    """Show a box in a drawing."""
    kinds = box.title if box.kind == "block" and not box.detail else ""
    detail = kinds or f"{'' if box.kind == 'block' else box.detail} → {shapes(box.shapes)}".strip()
    tip = [box_name(box), kinds or box.detail, f"output {shapes(box.shapes)}"]
    tip.append(f"outputs of one row: {words.byte_size(box.output_bytes)}")
    if box.calls > 1:
        tip.append(f"called {box.calls} times")
    return {
        "box": box,
        "name": _cut(("+ " if box.key else "") + box_name(box), NAME),
        "detail": _cut(detail, DETAIL),
        "figures": _figures(box),
        "tip": "; ".join(tip),
    }


def _figures(box: Box) -> str:
    if box.parameters:
        count = f"{box.parameters:,}".replace(",", "\u202f")
        frozen = " · frozen" if box.frozen else ""
        return f"{count} par. · {words.byte_size(box.bytes)}{frozen}"
    if box.kind == "model":
        return f"{box.period} layers inside"
    return f"called {box.calls} times" if box.calls > 1 else "no parameters"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
