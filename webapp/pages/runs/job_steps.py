"""Groups a job's steps for the line on its page."""

import itertools
from collections import Counter
from typing import NamedTuple

from jobs.answers.runs.jobs import StepOut
from jobs.kinds import titles_by_public_name


class StepGroup(NamedTuple):
    """Consecutive steps of one kind, which are shown together so that all steps fit one line.

    Attributes:
        kind: the title of the kind.
        links: each job that exists, with its title and its link text; the first link has the whole title.
        states: how many steps are in each state; None for those without a job yet.
    """

    kind: str
    links: list[tuple[int, str, str]]
    states: list[tuple[str | None, int]]


def group_steps(steps: list[StepOut]) -> list[StepGroup]:
    """Return the steps, with consecutive steps grouped by kind."""
    track, kinds = [], titles_by_public_name()
    for kind, members in itertools.groupby(steps, key=lambda step: step.kind):
        group = list(members)
        titles = [(step.job, step.title or kinds[kind]) for step in group if step.job is not None]
        words = zip(*(title.split() for _, title in titles), strict=False)
        common = len(list(itertools.takewhile(lambda same: len(set(same)) == 1, words)))
        links = [
            (job, title, title if at == 0 else " ".join(title.split()[common:]) or title)
            for at, (job, title) in enumerate(titles)
        ]
        track.append(StepGroup(kinds[kind], links, list(Counter(step.state for step in group).items())))
    return track


def later_steps(steps: list[StepOut]) -> list[str]:
    """Return the kinds of the steps that have no job yet, each once, as nouns in a sentence."""
    kinds = titles_by_public_name()
    return list(dict.fromkeys(kinds[step.kind].lower() for step in steps if step.state is None))
