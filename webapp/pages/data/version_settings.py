"""The settings on a version's page: the fields with which its file is read again."""

from collections.abc import Sequence
from typing import NamedTuple

from jobs import access
from jobs.access import Action
from jobs.models import DatasetVersion
from jobs.queries.data import datasets as queries
from jobs.spec.data.dates.formats import EXAMPLE, write_date
from jobs.spec.data.dates.unix_times import UNITS
from jobs.spec.data.dialect import ReadOptions
from jobs.spec.data.offers import Offer
from jobs.spec.data.profile import Column, Profile
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.pages.data.dataset_columns import read_place
from webapp.pages.shortcuts import (
    Request,
)

WITH_BAD_ROWS = ("csv", "json_lines", "xlsx", "images")
"""Sources whose rows are left out if they are damaged."""


SHOWN_OFFERS = 12
"""Findings with offers on one page."""
MOST_MORE = 3
FOLDED_FROM = 4
"""So many further columns with the same offer are below the first one."""


class DateFormatChoice(NamedTuple):
    """A suggested format with a date that is written so."""

    format: str
    example: str


DATE_FORMATS: tuple[DateFormatChoice, ...] = tuple(
    DateFormatChoice(form, write_date(EXAMPLE, form))
    for form in (
        *("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%y", "%m/%d/%y"),
        *("%m/%d/%Y %I:%M %p", "%d/%m/%Y %H:%M", "%d-%b-%Y", "%d %B %Y", "%B %d, %Y"),
        *("%Y%m%d", "%Y-%m", "%YQ%q", "%G-W%V", "%a, %d %b %Y %H:%M:%S %z"),
        *(unit.format for unit in UNITS),
    )
)
"""Formats that the form of a table suggests; a person may write others."""


class Button(NamedTuple):
    """A button that accepts an offer.

    Attributes:
        position: the offer's place in the profile; the address of the button has it.
        label: the text.
    """

    position: int
    label: str


class OfferGroup(NamedTuple):
    """A finding, and a button for each of its offers.

    Attributes:
        finding: the sentence.
        buttons: those of its offers.
        column: the first column that they change.
        more: the same finding on further columns, if many have it.
    """

    finding: str
    buttons: list[Button]
    column: str
    more: list["OfferGroup"]

    @property
    def position(self) -> int:
        """Return the place of the first offer, which names the sentence in the page."""
        return self.buttons[0].position


class OffersPage(NamedTuple):
    """Some findings with offers, the number of all, and the place of the first one that follows."""

    groups: list[OfferGroup]
    total: int
    next: int | None


def image_fields(version: DatasetVersion, profile: Profile | None) -> image_options.ImageFields | None:
    """Return the image size in a version's form; None for other data."""
    if version.request.get("source") != "images":
        return None
    if profile is not None:
        # An archive may have a table in place of images.
        return image_options.image_fields_of(profile.images.shape) if profile.images is not None else None
    return image_options.image_fields_of(
        ReadOptions.model_validate(version.request.get("reading", {})).images
    )


def may_edit_roles(request: Request, version: DatasetVersion) -> bool:
    """Return whether the table with the columns is a form. Everyone sees the same roles in bundled files."""
    profile = version.profile
    if profile is None or not has_file(version) or profile.images is not None:
        return False
    return access.can(request.user, version.dataset.project, Action.WRITE)


def may_accept_offers(request: Request, version: DatasetVersion) -> bool:
    """Return whether findings have their buttons, each of which reads the file again."""
    if version.state != DatasetVersion.State.READY or not has_file(version):
        return False
    return access.can(request.user, version.dataset.project, Action.WRITE)


def offers_page(offers: Sequence[Offer], request: Request) -> OffersPage:
    """Return the findings that `?offers=` chooses by the place of the first one."""
    first = read_place(request.GET.get("offers", ""))
    groups = group_offers(offers)
    # A few more are not worth a page of their own.
    count = SHOWN_OFFERS if len(groups) - first > SHOWN_OFFERS + MOST_MORE else len(groups)
    shown = groups[first : first + count]
    after = first + len(shown)
    return OffersPage(shown, len(groups), after if after < len(groups) else None)


def group_offers(offers: Sequence[Offer]) -> list[OfferGroup]:
    """Return the offers by finding, in the order in which the findings come first.

    Of a wide table, findings that offer the same for many columns are below the first of them.
    """
    groups: dict[str, OfferGroup] = {}
    kinds: dict[tuple[str, ...], list[OfferGroup]] = {}
    for position, offer in enumerate(offers):
        group = groups.get(offer.finding)
        if group is None:
            group = groups[offer.finding] = OfferGroup(offer.finding, [], offer.change.name, [])
        group.buttons.append(Button(position, offer.label))
    for group in groups.values():
        kind = tuple(button.label.replace(group.column, "") for button in group.buttons)
        kinds.setdefault(kind, []).append(group)
    folded: list[OfferGroup] = []
    for first, *more in kinds.values():
        columns = {group.column for group in (first, *more)}
        # Several findings on one column have each its own matter.
        if len(more) < FOLDED_FROM or len(columns) <= len(more):
            folded += [first, *more]
        else:
            first.more.extend(more)
            folded.append(first)
    return sorted(folded, key=lambda group: group.position)


def array_of_two_axes(profile: Profile | None) -> Column | None:
    """Return the feature whose rows may be images or sequences; None for other data."""
    if profile is None or profile.has_pipeline:
        return None
    features = (column for column in profile.columns if column.name in profile.features)
    return next((column for column in features if len(column.shape) == 2), None)


def bad_share(version: DatasetVersion) -> str | None:
    """Return the share of rows that may be left out, to be changed if the file could not be read."""
    if version.state != DatasetVersion.State.FAILED or version.request.get("source") not in WITH_BAD_ROWS:
        return None
    return f"{ReadOptions.model_validate(version.request.get('reading', {})).max_bad_share:g}"


def has_file(version: DatasetVersion) -> bool:
    """Return whether a version's file can be read again, from the store or from its address."""
    if version.upload is not None:
        return True
    fetch = queries.fetch_out(version)
    return fetch is not None and fetch.state == "done"


def fields_of_dialect(version: DatasetVersion) -> list[dialects.DialectField]:
    """Return the dialect's fields for a text table or a workbook; none for other formats and bundled data."""
    if not has_dialect(version):
        return []
    profile = version.profile
    file = profile.file if profile is not None else None
    sheet = file.sheet if file is not None else None
    is_workbook = sheet is not None or (file is None and version.request.get("source") == "xlsx")
    dialect = ReadOptions.model_validate(version.request.get("reading", {})).dialect.model_dump(mode="json")
    chosen = {
        f"{dialects.PREFIX}{name}": _as_text(value) for name, value in dialect.items() if value is not None
    }
    return dialects.dialect_fields(
        chosen,
        profile.dialect if profile is not None else None,
        sheet=sheet,
        names=dialects.OF_WORKBOOKS if is_workbook else dialects.OF_TEXT,
    )


def has_dialect(version: DatasetVersion) -> bool:
    """Return whether a version's file is text or a workbook, also one that was in an archive."""
    if version.profile is not None:
        return version.profile.dialect is not None
    return version.request.get("source") in ("csv", "xlsx")


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
