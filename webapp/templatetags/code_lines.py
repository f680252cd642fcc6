"""Filters that show code lines. They write the markup at once: a page has thousands of lines."""

from collections.abc import Iterator

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString

from jobs.messages.code import DifferenceLine, Highlighted

register = template.Library()

SIGNS = {"same": " ", "added": "+", "removed": "−"}


@register.filter
def source_lines(source: Highlighted) -> SafeString:
    """Show a file's lines, each with a number that links to it."""
    # All parts are escaped here or are numbers, and the classes of runs match a pattern.
    return SafeString(
        "".join(
            f'<span class="cd-line" id="L{number}"><a href="#L{number}">{number}</a>{_runs(runs)}\n</span>'
            for number, runs in enumerate(source.lines, start=1)
        )
    )


def _runs(runs: list[tuple[str, str]]) -> str:
    return "".join(
        f'<span class="cd-{css_class}">{escape(text)}</span>' if css_class else escape(text)
        for css_class, text in runs
    )


@register.filter
def difference_lines(lines: list[DifferenceLine]) -> SafeString:
    """Show the lines in a difference as table rows, with their numbers in both versions."""
    return SafeString("".join(map(_row, lines)))


def _row(line: DifferenceLine) -> str:
    numbers = "".join(f'<td class="cd-number">{number or ""}</td>' for number in (line.old, line.new))
    return (
        f'<tr class="cd-{line.change}">{numbers}<td class="cd-sign">{SIGNS[line.change]}</td>'
        f"<td>{''.join(_marked(line))}</td></tr>"
    )


def _marked(line: DifferenceLine) -> Iterator[str]:
    done = 0
    for first, last in line.marks:
        yield escape(line.text[done:first])
        yield f"<mark>{escape(line.text[first:last])}</mark>"
        done = last
    yield escape(line.text[done:])
