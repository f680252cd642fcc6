"""Texts and marks have enough contrast in both themes, computed from the style sheets' tokens.

The tables name each colour's backgrounds. A colour, a background or a coloured class of Tabler that
the pages use and no table knows fails too, so that each new one is entered where it is used.
"""

import re
from pathlib import Path

import pytest

from tests.web.styles.themes import (
    OURS,
    STATIC,
    TABLER,
    THEMES,
    Colour,
    Rule,
    colour,
    contrast,
    properties,
    rules,
)
from webapp.report_figures.mesh.devices import DARKEST, HUES, LIGHTEST

ROOT = STATIC.parents[1]
FOR_TEXT, FOR_MARKS = 4.5, 3.0
"""The least contrasts of level AA. No text counts as large: the largest is 32 px, most of them are 13 px."""
SURFACE = "var(--ty-surface)"
PLAIN = (
    *("var(--tblr-body-bg)", SURFACE, "var(--ty-hover)"),
    *(f"var(--tblr-{name})" for name in ("bg-surface", "bg-forms", "bg-forms-disabled", "hover-bg")),
)
"""Backgrounds on which any text may be."""
SYNTAX = tuple(f"var(--cd-{name})" for name in ("keyword", "name", "text", "number", "comment", "decorator"))
TONES = tuple(
    f"var(--ty-{name})"
    for name in ("queued", "running", "stopped", "retrying", "pruned", "completed", "failed", "neutral")
)
BODY, QUIET, LINK = "var(--tblr-body-color)", "var(--tblr-secondary)", "var(--tblr-link-color)"
INKS = (*(BODY, QUIET, LINK, "var(--tblr-link-hover-color)", "var(--tblr-heading-color)"), *TONES, *SYNTAX)
"""Colours of texts, which may be on any plain background."""
SHADE = "color-mix(in srgb, var(--ty-running) {}%, transparent)"
BEST = "color-mix(in srgb, var(--ty-completed) 8%, var(--ty-surface))"
SELECTED = "color-mix(in srgb, var(--ty-running) 12%, var(--ty-surface))"
VERSION = "color-mix(in srgb, var(--ty-version) 18%, var(--ty-surface))"
TINTED = {
    **dict.fromkeys(
        (f"var(--cd-{name})" for name in ("added", "removed", "added-word", "removed-word")), (BODY,)
    ),
    "var(--cd-target)": (BODY, QUIET, *SYNTAX),
    **{SHADE.format(share): (BODY,) for share in (6, 10, 14, 18, 22, 26, 30, 34, 38)},
    **dict.fromkeys((BEST, SELECTED, SHADE.format(12)), (BODY, QUIET, LINK, *TONES)),
    VERSION: (BODY,),
    "var(--tblr-active-bg)": (LINK,),
}
"""Other backgrounds, and the colours of the texts on them."""
WITHOUT_TEXT = {
    *("none", "transparent", "currentColor", "var(--ty-line)", "#fff", "#000", "rgb(10 14 20 / 45%)"),
    *(f"var(--ty-{name})" for name in ("running", "retrying", "stopped", "failed")),
    "color-mix(in srgb, var(--tblr-body-color) var(--ink, 0%), var(--ty-surface))",
    *(f"var(--md-{number})" for number in range(4)),
}
"""Backgrounds of bars, marks, pictures and the curtain behind a dialog."""
SLICES = tuple(f"color-mix(in srgb, var(--md-{hue}) {{}}%, transparent)" for hue in range(HUES))
"""Slices of a variable on devices, and parts of a bar of memory, with indices and sizes on them."""
MARKS = (*TONES, LINK, QUIET, "var(--ty-train)", "var(--ty-validation)")
"""Colours of icons, bars and lines, on the backgrounds of pages, cards and bars."""
COLOURED = re.compile(r"^(?!.*border).*(color|background|-bg)$")
"""Properties, custom ones too, with the colour of a text or a background."""
FAINT = {'.ty-chart-legend [aria-pressed="false"] > span'}
"""Marks that are faint on purpose: the sample of a hidden line, beside its struck out name."""
OF_TABLER = {
    *("alert", "alert-danger", "breadcrumb", "breadcrumb-item", "btn", "btn-close", "btn-danger"),
    *("btn-link", "btn-outline-danger", "btn-primary", "card", "card-body", "card-footer", "card-header"),
    *("card-title", "dropdown-item", "dropdown-menu", "form-check-input", "form-check-label", "form-control"),
    *("form-control-plaintext", "form-hint", "form-label", "form-range", "form-select", "h2", "h3", "h4"),
    *("nav", "nav-link", "nav-tabs", "offcanvas-lg", "subheader", "table", "text-secondary"),
}
"""Classes of Tabler that pages use and that have colours: those of the tables above."""


def trial_colours() -> list[str]:
    text = (STATIC / "js" / "shared" / "charts" / "colours.js").read_text()
    (colours,) = re.findall(r"OF_TRIALS = \[(.*)\]", text)
    return re.findall(r"#[0-9a-f]{6}", colours)


def ground(text: str, theme: str, **scripted: str) -> Colour:
    return colour(text, theme, **scripted).over(colour(SURFACE, theme))


def too_faint(pairs: list[tuple[str, str]], theme: str, least: float, **scripted: str) -> list[str]:
    pairs_too_faint = []
    for ink, back in pairs:
        if properties(theme).get(ink[4:-1]) == "inherit":
            continue
        value = contrast(colour(ink, theme, **scripted), ground(back, theme, **scripted))
        if value < least:
            pairs_too_faint.append(f"{ink} on {back}: {value:.2f}")
    return pairs_too_faint


def own_pair(rule: Rule) -> tuple[str, str] | None:
    """Return a rule's colours if it sets its text and its background."""
    declared = rule.declarations
    text = declared.get("color") or declared.get("--tblr-btn-color")
    back = declared.get("background") or declared.get("--tblr-btn-bg")
    return (text, back) if text and back and text != "inherit" and back != "none" else None


@pytest.mark.parametrize("theme", THEMES)
def test_texts_are_readable_on_every_plain_background(theme: str) -> None:
    assert not too_faint([(ink, back) for ink in INKS for back in PLAIN], theme, FOR_TEXT)


@pytest.mark.parametrize("theme", THEMES)
def test_texts_are_readable_on_tinted_backgrounds(theme: str) -> None:
    pairs = [(ink, back) for back, inks in TINTED.items() for ink in inks]
    for version in (*trial_colours(), "var(--tblr-secondary)"):
        assert not too_faint(pairs, theme, FOR_TEXT, ty_version=version)


@pytest.mark.parametrize("theme", THEMES)
def test_indices_are_readable_on_slices_of_every_strength(theme: str) -> None:
    shares = [round(100 * share) for share in (LIGHTEST, DARKEST)]
    pairs = [(BODY, each.format(share)) for each in SLICES for share in shares]
    assert not too_faint(pairs, theme, FOR_TEXT)


@pytest.mark.parametrize("theme", THEMES)
def test_texts_are_readable_where_one_rule_sets_them_and_their_background(theme: str) -> None:
    pairs = [pair for rule in rules(*OURS) if (pair := own_pair(rule))]
    assert ("#fff", "var(--tblr-primary)") in pairs
    for version in trial_colours():
        assert not too_faint(pairs, theme, FOR_TEXT, ty_version=version)
    hovered = [
        rule.declarations["--tblr-btn-hover-bg"]
        for rule in rules(*OURS)
        if "--tblr-btn-hover-bg" in rule.declarations
    ]
    assert not too_faint([("#fff", back) for back in hovered], theme, FOR_TEXT)


@pytest.mark.parametrize("theme", THEMES)
def test_marks_are_seen_on_pages_cards_and_bars(theme: str) -> None:
    assert not too_faint([(mark, back) for mark in MARKS for back in PLAIN[:3]], theme, FOR_MARKS)
    assert not too_faint([(mark, SURFACE) for mark in trial_colours()], theme, FOR_MARKS)


def test_the_tables_know_every_colour_of_texts() -> None:
    used = {
        rule.declarations[name]
        for rule in rules(*OURS)
        for name in ("color", "fill", "--tblr-btn-color", "--tblr-dropdown-link-active-color")
        if name in rule.declarations and not own_pair(rule)
    }
    of_shapes = {"none", "var(--ty-surface)", "var(--ty-hover)", "var(--ty-line)", "var(--md-hue)"}
    of_shapes |= {f"var(--md-{number})" for number in range(4)}
    assert used - {"inherit", "transparent"} - of_shapes <= {*INKS}


def test_the_tables_know_every_background() -> None:
    used = {
        rule.declarations[name]
        for rule in rules(*OURS)
        for name in ("background", "background-color", "--tblr-offcanvas-bg")
        if name in rule.declarations and not own_pair(rule)
    }
    gradients = {value for value in used if "gradient(" in value}
    assert used - gradients <= {*PLAIN, *TINTED, *WITHOUT_TEXT}
    assert {*TINTED} - {"var(--tblr-active-bg)", VERSION} <= used


def test_no_text_is_faded() -> None:
    faded = {rule.selector for rule in rules(*OURS) if float(rule.declarations.get("opacity", 1)) < 1}
    assert faded == FAINT


def test_the_tables_know_every_coloured_class_of_tabler_on_the_pages() -> None:
    coloured = {
        name
        for rule in rules(TABLER)
        if any(COLOURED.search(property_name) for property_name in rule.declarations)
        for selector in rule.selector.split(",")
        for name in re.findall(r"^\.([\w-]+)(?:[:.][^ ]*)?$", selector.strip())
    }
    sources = [
        *(ROOT / "templates").rglob("*.html"),
        *(STATIC / "js").rglob("*.js"),
        *(ROOT / "webapp").rglob("*.py"),
    ]
    assert coloured & classes_in(sources) == OF_TABLER


def classes_in(files: list[Path]) -> set[str]:
    """Return the words in all `class="…"`, in HTML and in scripts."""
    texts_by_file = (
        re.findall(r"class(?:Name)?[\"']?\s*[=:]\s*[\"'`]([^\"'`]*)", file.read_text()) for file in files
    )
    return {word for texts in texts_by_file for text in texts for word in re.split(r"[\s{}%]+", text)}
