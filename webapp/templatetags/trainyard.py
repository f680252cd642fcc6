"""The components of the design system as template tags, which `/styleguide` shows.

Templates need no `{% load %}`, because the settings list this module as built-in.
"""

import datetime as dt
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django import template
from django.conf import settings
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from jobs import clock, program
from jobs.public_path import beside_public_path
from jobs.queries.dismissals import Thing, need_of
from jobs.queries.storage import deletions
from jobs.queries.storage.deletion_scope import DELETION_KINDS, Deletable
from jobs.spec.exports import STORED
from webapp.templatetags import words
from webapp.templatetags.states import look

register = template.Library()
SPRITE = "vendor/tabler-icons-3.51.0/sprite.svg"


# A page has tens of icons, most of them on every page. Bounded, because a template may pass any label; by
# type too, because a text that is safe and one that must be escaped can be equal.
@register.simple_tag
@lru_cache(maxsize=1024, typed=True)
def icon(name: str, css: str = "", label: str = "") -> SafeString:
    """Show an icon from the sprite. Without a `label` it is hidden from screen readers."""
    attributes = (
        format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    )
    return format_html(
        '<svg class="icon {}" {}><use href="{}#{}"></use></svg>', css, attributes, static(SPRITE), name
    )


@register.simple_tag
def public_path() -> str:
    """Return the path of the public address, with which every address begins; empty without one."""
    return beside_public_path("")


@register.simple_tag
def cookie_suffix() -> str:
    """Return the end of the names of this installation's cookies."""
    return settings.TRAINYARD_COOKIE_SUFFIX


@register.simple_tag
def model_suffix() -> str:
    """Return the suffix of the files in which models are stored."""
    return STORED.suffix


@register.inclusion_tag("components/state.html")
def state_badge(state: str, word: str = "", title: str = "") -> dict[str, Any]:
    """Show the state of a job, trial, version, worker or gate as icon, word and colour."""
    return {"state": state, "look": look(str(state)), "word": word, "title": title}


@register.inclusion_tag("components/metric.html")
def metric(
    value: float | None,
    *,
    split: str = "",
    rows: int | None = None,
    std: float | None = None,
    digits: int = 4,
) -> dict[str, Any]:
    """Show a metric's value with its standard deviation, split and number of rows.

    A standard deviation that is zero or None is not shown; for a single execution it is meaningless.
    """
    variables = {"value": words.number(value, digits), "split": split, "rows": rows}
    return {**variables, "std": words.number(std, digits) if std else None}


@register.inclusion_tag("components/person.html")
def person(user: Any, me: Any = None) -> dict[str, Any]:
    """Show a user by initial and name; "the installation" if there is no user."""
    return {"person": user, "is_me": me is not None and user == me}


@register.simple_tag
def ago(moment: dt.datetime | None, none: str = "–") -> SafeString | str:
    """Show a time relative to now, with the absolute time on hover; a script keeps it current."""
    if not moment:
        return none
    utc = moment.astimezone(dt.UTC)
    return format_html(
        '<time datetime="{}" title="{}" data-relative>{}</time>',
        utc.isoformat(),
        utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
        words.relative(clock.estimate() - moment),
    )


@register.simple_tag
def clock_time(moment: dt.datetime) -> SafeString:
    """Show a time of today as `12:04 UTC`, and an earlier one with its date."""
    utc = moment.astimezone(dt.UTC)
    is_today = utc.date() == clock.estimate().astimezone(dt.UTC).date()
    return format_html(
        '<time datetime="{}">{}</time>',
        utc.isoformat(),
        utc.strftime("%H:%M UTC" if is_today else "%Y-%m-%d %H:%M UTC"),
    )


@register.inclusion_tag("components/progress.html")
def progress(done: Any, *, label: str = "", small: bool = False) -> dict[str, Any]:
    """Show `{done, total, unit, eta_seconds, fraction?}` as a bar with the time left."""
    return {"bar": words.progress(done or {}), "label": label or "progress", "small": small}


@register.inclusion_tag("components/meter.html")
def meter(value: float, total: float, *, label: str, unit: str = "") -> dict[str, Any]:
    """Show how much is used, such as slots, memory or load."""
    share = 100 * value / total if total else 0.0
    level = "high" if share >= 90 else "some" if share else "none"
    return {"value": value, "total": total, "label": label, "unit": unit, "share": share, "level": level}


@register.inclusion_tag("components/copyable.html")
def copyable(text: Any, short: int = 12, *, label: str = "") -> dict[str, Any]:
    """Show an id or a digest, shortened, with a button that copies the whole text."""
    full = str(text)
    return {"full": full, "shown": full if len(full) <= short else full[:short], "label": label or "id"}


def _one_line(content: str) -> SafeString:
    """Return a block's content as text for an element or a quoted attribute."""
    # Safe: the template engine has escaped the variables of the block, and quotes are escaped here.
    return mark_safe(" ".join(content.split()).replace('"', "&quot;"))  # noqa: S308


@register.simple_block_tag
def empty_state(
    content: str, title: str, *, url: str = "", label: str = "", icon: str = "notes", command: str = ""
) -> SafeString:
    """Show that a list is empty, with a link to the next step; the block's content is a hint."""
    variables = {"title": title, "hint": _one_line(content), "url": url, "label": label, "icon": icon}
    return render_to_string("components/empty.html", {**variables, "command": command})


@register.simple_block_tag(takes_context=True)
def confirm_button(
    context: template.Context,
    content: str,
    url: str,
    label: str,
    *,
    title: str = "",
    icon: str = "",
    css: str = "btn-outline-danger",
    small: bool = False,
    tip: str = "",
    **fields: Any,
) -> SafeString:
    """Show a button that opens a confirmation dialog.

    The block's content names the consequences; `tip` is the tooltip; `fields` are posted with the form.
    """
    variables = {
        "url": url,
        "label": label,
        "title": title or f"{label}?",
        "lost": _one_line(content),
        "tip": tip,
        "icon": icon,
        "css": f"{css} btn-sm" if small else css,
        "fields": fields,
        "csrf_token": context.get("csrf_token"),
        "next": _page_address(context),
    }
    return render_to_string("components/confirm.html", variables)


def _page_address(context: template.Context) -> str:
    """Return the address of the page to which a button returns, also from a part that is loaded again."""
    if "request" not in context:
        return ""
    request = context["request"]
    query = request.GET.copy()
    query.pop("part", None)
    return f"{request.path}?{query.urlencode()}" if query else str(request.path)


@register.inclusion_tag("components/post.html", takes_context=True)
def post_button(
    context: template.Context,
    url: str,
    label: str,
    *,
    icon: str = "",
    css: str = "",
    small: bool = False,
    bare: bool = False,
    tip: str = "",
    **fields: Any,
) -> dict[str, Any]:
    """Show a button that posts at once, for changes that can be undone; a `bare` one shows only its icon.

    `tip` is the tooltip, which names the effect.
    """
    return {
        "bare": bare,
        "tip": tip,
        "url": url,
        "label": label,
        "icon": icon,
        "css": f"{css} btn-sm" if small else css,
        "fields": fields,
        "csrf_token": context.get("csrf_token"),
        "next": _page_address(context),
    }


@register.inclusion_tag("components/start_button.html")
def start_button(
    url: str,
    label: str,
    *,
    icon: str = "",
    css: str = "",
    small: bool = False,
    tip: str = "",
    **fields: Any,
) -> dict[str, Any]:
    """Show a button that starts work: it first opens the plan of what would run.

    `tip` is the tooltip, which names the effect; `fields` choose what would run.
    """
    query = f"?{urlencode(fields)}" if fields else ""
    css = f"{css} btn-sm" if small else css
    return {"address": url + query, "label": label, "icon": icon, "css": css, "tip": tip}


@register.inclusion_tag("components/post.html", takes_context=True)
def dismiss_button(context: template.Context, thing: Thing) -> dict[str, Any]:
    """Show the button that hides a thing under "Needs you", until something new happens to it."""
    need = need_of(thing)
    return post_button(
        context,
        reverse("need_dismiss"),
        f"Dismiss {getattr(thing, 'label', thing)}",
        icon="x",
        bare=True,
        kind=need.kind,
        row=need.row,
        state=need.state,
    )


@register.inclusion_tag("components/table_head.html")
def table_head(*labels: str, hidden: str = "") -> dict[str, Any]:
    """Show a table's head.

    A label that begins with `#` heads a column of numbers. `hidden` labels a last column, such as that of
    buttons, for screen readers alone.
    """
    return {"columns": [(text.removeprefix("#"), text.startswith("#")) for text in labels], "hidden": hidden}


@register.inclusion_tag("components/pager.html", takes_context=True)
def pager(context: template.Context, rows: Any, what: str = "rows") -> dict[str, Any]:
    """Show the number of rows and a link to the next page in a `jobs.queries.paging.Page`."""
    return {"page": rows, "what": what, "request": context["request"]}


@register.inclusion_tag("components/deletion.html", takes_context=True)
def deletion_link(context: template.Context, row: Deletable, *, small: bool = False) -> dict[str, Any]:
    """Show a link to the page that deletes a row, for those who may."""
    may_delete = deletions.may_delete(context["request"].user, row)
    return {"kind": DELETION_KINDS[type(row)], "target": row.pk if may_delete else None, "small": small}


@register.inclusion_tag("components/breadcrumb.html")
def breadcrumb(crumbs: list[tuple[str, str]]) -> dict[str, Any]:
    """Show the breadcrumb that `shortcuts.crumbs` returns."""
    return {"crumbs": crumbs}


@register.inclusion_tag("components/tabs.html")
def tabs(items: list[tuple[str, str, str]], current: str, label: str = "Sections") -> dict[str, Any]:
    """Show (key, label, address) triples as tabs."""
    return {"items": items, "current": current, "label": label}


@register.inclusion_tag("components/kpi.html")
def kpi(
    label: str, value: Any, *, hint: str = "", icon: str = "", url: str = "", state: str = ""
) -> dict[str, Any]:
    """Show one key figure as a card; a zero has no colour."""
    variables = {"label": label, "value": value, "hint": hint, "icon": icon, "url": url}
    return {**variables, "look": look(state) if state and value else None}


@register.simple_tag
def program_version() -> str:
    """Show this program's version."""
    return program.program_version()


@register.simple_tag
def shell_command(*words: str, with_home: bool = True) -> str:
    """Show the line that runs a command in a terminal."""
    return program.command_line(" ".join(words), with_home=with_home)


@register.simple_tag
def url_or(name: str, *args: Any, otherwise: str = "#") -> str:
    """Return a page's address, or `otherwise` if it does not exist."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return otherwise
