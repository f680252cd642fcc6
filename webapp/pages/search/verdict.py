"""Judges the best trial's lead in words."""

from typing import NamedTuple

from jobs.answers.search.search_results import (
    AnswerOut,
    LeadOut,
)
from webapp.templatetags import words

METHODS = {
    "welch": "Welch's t-interval of independent trainings. It covers the seeds; another choice of "
    "validation rows would add to it.",
    "paired_folds": "t-interval of the differences on the same folds, corrected for their common training "
    "rows (Nadeau and Bengio 2003).",
}


class Verdict(NamedTuple):
    """Whether the best trial's lead is more than luck: icon, tone, sentence, numbers and method."""

    icon: str
    tone: str
    sentence: str
    detail: str = ""
    method: str = ""


def verdict_on_lead(answer: AnswerOut) -> Verdict | None:
    """Judge whether the best trial's lead is more than luck; None with several objectives.

    None also if no trial beats the constant prediction: then it does not matter which of them is better.
    """
    if answer.baseline is not None and not answer.baseline.beaten:
        return None
    if answer.next is None:
        return Verdict("info-circle", "", "Only one configuration has a score, so there is no lead to judge.")
    if answer.lead is None:
        return None
    other, lead = f"trial {answer.next.number}", answer.lead
    if lead.verdict == "clear":
        sentence = f"Yes. Its lead over {other} is more than luck."
        return Verdict("check", "completed", sentence, _describe_interval(answer, lead), METHODS[lead.method])
    if lead.verdict == "unclear":
        sentence = f"No. It cannot be distinguished from {other}, the next one."
        detail = f"{_describe_interval(answer, lead)} {_describe_remedy(lead)}"
        return Verdict("scale", "retrying", sentence, detail, METHODS[lead.method])
    if min(lead.trainings) < 2:
        reason = (
            "Each of the two was trained once" if max(lead.trainings) < 2 else f"{other} was trained once"
        )
        sentence = f"That is not known yet. {reason[0].upper()}{reason[1:]}."
    else:
        sentence = "That is not known yet. Their repeated trainings have exactly the same scores."
    unknown = "Trainings with other seeds differ by an amount that is not known yet."
    detail = f"{_describe_difference(answer, lead)} {unknown}"
    return Verdict("help", "retrying", sentence, f"{detail} To find out, train both again with new seeds.")


def _describe_difference(answer: AnswerOut, lead: LeadOut) -> str:
    if lead.value == 0:
        return f"Both have the same {answer.scoring.metric}."
    better = "better" if lead.value > 0 else "worse over all trainings with its values"
    return f"Its {answer.scoring.metric} is {words.number(abs(lead.value), 3)} {better}."


def _describe_interval(answer: AnswerOut, lead: LeadOut) -> str:
    first, second = lead.trainings
    return (
        f"{_describe_difference(answer, lead)} {100 * lead.confidence:.0f} % interval of the difference: "
        f"{words.number(lead.low, 3)} to {words.number(lead.high, 3)}, from {first} and {second} trainings."
    )


def _describe_remedy(lead: LeadOut) -> str:
    if lead.needed is None:
        return "More than 100 trainings of each could not settle so small a difference: use either."
    return f"About {lead.needed} trainings of each would settle a lead of this size."
