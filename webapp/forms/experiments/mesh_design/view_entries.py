"""Reads the fields of the designer beside the mesh: batch, assumed hardware, and the part that is shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

from jobs.spec.data.file_limits import GIB
from jobs.spec.plan.mesh.speed import HARDWARE, Hardware
from jobs.spec.problems import Problem
from webapp.whole_numbers import read_whole

Show = Literal["all", "unmatched", "twice", "indivisible"]
SHOWS: tuple[Show, ...] = ("all", "unmatched", "twice", "indivisible")
PAGE_ROWS = 50


@dataclass(frozen=True)
class ViewEntries:
    """The entries as text; an empty one means the default.

    Attributes:
        variable: the path of the variable that is drawn.
        show: which variables are listed.
        text: a part of the paths that are listed.
        page: the page of the list, from 1.
        batch: the rows of a batch of all devices together.
        memory: the memory of a device in GiB.
        teraflops: the speed of a device.
        link: the gigabytes per second between devices.
    """

    variable: str
    show: Show
    text: str
    page: int
    batch: str
    memory: str
    teraflops: str
    link: str

    @classmethod
    def read(cls, values: Mapping[str, str]) -> Self:
        """Read the entries of an address or a form."""
        show = next((known for known in SHOWS if known == values.get("show")), SHOWS[0])
        text = values.get("q", "")[:200].strip()
        # Another list begins with its first page.
        is_same = values.get("listed", f"{show} {text}") == f"{show} {text}"
        return cls(
            variable=values.get("variable", ""),
            show=show,
            text=text,
            page=(read_whole(values.get("page", ""), digits=6) if is_same else None) or 1,
            **{name: values.get(name, "").strip() for name in ("batch", "memory", "teraflops", "link")},
        )

    def query(self) -> dict[str, str]:
        """Return the parameters of an address that has these entries; defaults are left out."""
        return {
            "variable": self.variable,
            "show": "" if self.show == "all" else self.show,
            "q": self.text,
            "page": "" if self.page == 1 else str(self.page),
            "batch": self.batch,
            "memory": self.memory,
            "teraflops": self.teraflops,
            "link": self.link,
        }


@dataclass(frozen=True)
class Settings:
    """The numbers in the entries, with defaults.

    Attributes:
        batch: rows of a batch.
        memory: bytes of a device that a person has entered; None: none was.
        hardware: the assumed speeds.
        default: those without entries.
        problems: of entries that are no such number; their defaults hold.
    """

    batch: int
    memory: int | None
    hardware: Hardware
    default: Hardware
    problems: tuple[Problem, ...]


def read_settings(entries: ViewEntries, *, batch: int, kind: str) -> Settings:
    """Return the numbers in the entries.

    Args:
        entries: the entries.
        batch: the batch in the spec.
        kind: the kind of the mesh's devices.
    """
    problems: list[Problem] = []
    default = HARDWARE.get(kind, HARDWARE["gpu"])
    rows = _positive(entries.batch, "batch", problems, most=1e8, whole=True)
    gigabytes = _positive(entries.memory, "memory", problems, most=1e6)
    teraflops = _positive(entries.teraflops, "teraflops", problems, most=1e6)
    link = _positive(entries.link, "link", problems, most=1e6)
    return Settings(
        int(rows) if rows is not None else batch,
        round(gigabytes * GIB) if gigabytes is not None else None,
        default._replace(
            flops=teraflops * 1e12 if teraflops is not None else default.flops,
            link=link * 1e9 if link is not None else default.link,
        ),
        default,
        tuple(problems),
    )


def _positive(
    text: str, field: str, problems: list[Problem], *, most: float, whole: bool = False
) -> float | None:
    if not text:
        return None
    try:
        value = float(text) if len(text) < 20 and text.isascii() else 0.0
    except ValueError:
        value = 0.0
    if not 0 < value <= most or (whole and value != int(value)):
        what = "a whole number" if whole else "a number"
        problems.append(Problem(f"/{field}", f"give {what} above 0, at most {most:,.0f}, not {text[:20]!r}"))
        return None
    return value
