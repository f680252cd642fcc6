"""Reads the style sheets' colours in both themes, and computes contrasts as WCAG defines them."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

STATIC = Path(__file__).resolve().parents[3] / "webapp" / "static"
TABLER = next((STATIC / "vendor").glob("tabler-1*/tabler.min.css"))
OURS = tuple(sorted((STATIC / "css").glob("*.css")))
THEMES = ("light", "dark")
Vector = tuple[float, float, float]


class Rule(NamedTuple):
    """A style sheet rule, without the media query around it."""

    selector: str
    declarations: Mapping[str, str]


class Colour(NamedTuple):
    """Red, green and blue from 0 to 1, as sRGB, and the opacity."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def over(self, ground: "Colour") -> "Colour":
        """Return the colour that is seen if this one lies on an opaque one."""
        mixed = (
            top * self.alpha + low * (1 - self.alpha) for top, low in zip(self[:3], ground[:3], strict=True)
        )
        return Colour(*mixed)


@cache
def rules(*sheets: Path) -> list[Rule]:
    """Return the rules in some sheets, in their order."""
    text = "".join(sheet.read_text() for sheet in sheets)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [
        Rule(" ".join(selector.split()), dict(_declarations(body)))
        for selector, body in re.findall(r"([^{};]+)\{([^{}]*)\}", text)
    ]


def _declarations(body: str) -> Iterator[tuple[str, str]]:
    for line in re.split(r";(?![^(]*\))", body):  # not those inside of url(…)
        name, _, value = line.partition(":")
        if value:
            yield name.strip(), value.removesuffix("!important").strip()


@cache
def properties(theme: str) -> Mapping[str, str]:
    """Return a theme's custom properties: Tabler's, replaced by ours."""
    custom_properties: dict[str, str] = {}
    places = re.compile(rf'(:host|:root|\[data-(bs-)?theme(="?{theme}"?)?\])')
    for rule in (*rules(TABLER), *rules(*OURS)):
        if any(places.fullmatch(place.strip()) for place in rule.selector.split(",")):
            custom_properties |= {
                name: value for name, value in rule.declarations.items() if name.startswith("--")
            }
    return custom_properties


def colour(text: str, theme: str, **scripted: str) -> Colour:
    """Return the colour that a value has in a theme.

    Args:
        text: as in a style sheet.
        theme: one of `THEMES`.
        scripted: custom properties that scripts set, without dashes: `ty_version`.

    Raises:
        ValueError: the value is not understood.
    """
    scripted_properties = {f"--{name.replace('_', '-')}": value for name, value in scripted.items()}
    return _colour(text, {**properties(theme), **scripted_properties}, theme)


def _colour(text: str, custom_properties: Mapping[str, str], theme: str) -> Colour:
    text = text.strip()
    if match := re.fullmatch(r"#([0-9a-f]{3}|[0-9a-f]{6})", text):
        digits = match[1] if len(match[1]) == 6 else "".join(2 * digit for digit in match[1])
        return Colour(*(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)))
    if text in ("transparent", "white", "black"):
        level = float(text == "white")
        return Colour(level, level, level, float(text != "transparent"))
    name, _, inside = text.removesuffix(")").partition("(")
    parts = _parts(inside)
    match name:
        case "var":
            return _colour(
                custom_properties[parts[0]] if parts[0] in custom_properties else parts[1],
                custom_properties,
                theme,
            )
        case "light-dark":
            return _colour(parts[THEMES.index(theme)], custom_properties, theme)
        case "rgb" | "rgba" | "oklch":
            numbers = [
                float(number) * (0.01 if unit == "%" else 1)
                for number, unit in re.findall(r"([\d.]+)(%?)", inside)
            ]
            if name == "oklch":
                return Colour(*_from_oklab(_from_polar((numbers[0], numbers[1], numbers[2]))))
            return Colour(*(number / 255 for number in numbers[:3]), *numbers[3:])
        case "color-mix":
            return _mix(parts, custom_properties, theme)
    raise ValueError(f"not understood: {text}")


def _parts(text: str) -> list[str]:
    """Split a function's arguments at the commas outside of inner functions."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _mix(parts: list[str], custom_properties: Mapping[str, str], theme: str) -> Colour:
    """Compute `color-mix`. A colour that is mixed with transparency keeps its hue."""
    shares, mixed = [], []
    for part in parts[1:]:
        match = re.fullmatch(r"(.*?)(?:\s+([\d.]+)%)?", part)
        assert match
        shares.append(None if match[2] is None else float(match[2]) / 100)
        mixed.append(_colour(match[1], custom_properties, theme))
    first, second = shares
    share = first if first is not None else 0.5 if second is None else 1 - second
    weights = [share * mixed[0].alpha, (1 - share) * mixed[1].alpha]
    alpha = sum(weights)
    if not alpha:
        return Colour(0, 0, 0, 0)
    is_oklab = "oklab" in parts[0]
    vectors = [_to_oklab(colour_value[:3]) if is_oklab else colour_value[:3] for colour_value in mixed]
    sums = [sum(w * v[i] for w, v in zip(weights, vectors, strict=True)) / alpha for i in range(3)]
    vector = (sums[0], sums[1], sums[2])
    return Colour(*(_from_oklab(vector) if is_oklab else vector), alpha)


def _from_polar(value: Vector) -> Vector:
    lightness, chroma, hue = value
    return lightness, chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))


def _from_oklab(value: Vector) -> Vector:
    light, a, b = value
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _to_srgb(4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short),
        _to_srgb(-1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short),
        _to_srgb(-0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short),
    )


def _to_oklab(value: Vector) -> Vector:
    red, green, blue = (_to_linear(channel) for channel in value)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def _to_srgb(value: float) -> float:
    value = min(max(value, 0.0), 1.0)
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


def _to_linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def contrast(ink: Colour, ground: Colour) -> float:
    """Return a text's contrast on an opaque background, from 1 to 21."""
    high, low = sorted((_luminance(ink.over(ground)), _luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(value: Colour) -> float:
    red, green, blue = (_to_linear(channel) for channel in value[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
