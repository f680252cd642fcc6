"""Reads what running trials do while their progress is not known, such as compiling."""

from jobs.messages.events import PhaseName
from jobs.models import Job


def phases_of_search(search: Job) -> dict[int, PhaseName]:
    """Return the running trials' phases, by trial number. Trials without one are left out."""
    records = search.attempts.open().values_list("record", flat=True)
    phases = {phase["trial"]: phase["name"] for record in records if (phase := record.get("phase"))}
    running = search.trials.running().filter(number__in=phases).order_by("number")
    return {number: phases[number] for number in running.values_list("number", flat=True)} if phases else {}
