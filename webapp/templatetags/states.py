"""Maps each state to an icon, an app.css colour class and a word, so that colour is never the only sign."""

from typing import NamedTuple


class Look(NamedTuple):
    """Icon, colour class, word, and whether the icon turns."""

    icon: str
    tone: str
    word: str
    spins: bool = False


LOOKS: dict[str, Look] = {
    # jobs and trials
    "draft": Look("edit", "neutral", "draft"),
    "queued": Look("clock", "queued", "queued"),
    "starting": Look("hourglass", "running", "starting"),
    "running": Look("loader-2", "running", "running", spins=True),
    "paused": Look("player-pause", "stopped", "paused"),
    "retrying": Look("repeat", "retrying", "retrying"),
    "stopping": Look("player-stop", "stopped", "stopping"),
    "stopped": Look("player-stop", "stopped", "stopped"),
    "completed": Look("circle-check", "completed", "completed"),
    "failed": Look("circle-x", "failed", "failed"),
    "lost": Look("plug-connected-x", "retrying", "lost"),
    "killed": Look("player-stop", "stopped", "killed"),
    "assigned": Look("clock", "queued", "assigned"),
    "ended": Look("circle-check", "neutral", "ended"),
    "pruned": Look("line-dashed", "pruned", "pruned"),
    "promoted": Look("arrow-up", "completed", "promoted"),
    # data and versions
    "preparing": Look("loader-2", "running", "preparing", spins=True),
    "building": Look("loader-2", "running", "installing", spins=True),
    "removed": Look("trash", "stopped", "removed"),
    "ready": Look("circle-check", "completed", "ready"),
    "validating": Look("loader-2", "running", "validating", spins=True),
    "candidate": Look("package", "neutral", "candidate"),
    "invalid": Look("circle-x", "failed", "invalid"),
    "production": Look("rocket", "completed", "production"),
    "staging": Look("eye", "running", "staging"),
    "canary": Look("activity", "retrying", "canary"),
    "archived": Look("archive", "stopped", "archived"),
    # promotion requests and gates
    "gating": Look("loader-2", "running", "checking", spins=True),
    "pending": Look("clock", "queued", "pending"),
    "approved": Look("check", "running", "approved"),
    "released": Look("rocket", "completed", "released"),
    "rejected": Look("thumb-down", "failed", "rejected"),
    "withdrawn": Look("arrow-back-up", "stopped", "withdrawn"),
    "expired": Look("hourglass", "stopped", "expired"),
    "passed": Look("check", "completed", "passed"),
    "skipped": Look("player-skip-forward", "stopped", "skipped"),
    "not_evaluated": Look("help-circle", "retrying", "not evaluated"),
    "overridden": Look("alert-triangle", "retrying", "overridden"),
    # workers and people
    "up": Look("circle-check", "completed", "up"),
    "draining": Look("hourglass", "retrying", "draining"),
    "gone": Look("power", "stopped", "gone"),
    "active": Look("circle-check", "completed", "active"),
    "inactive": Look("user-off", "stopped", "inactive"),
    "revoked": Look("ban", "stopped", "revoked"),
}


def look(state: str) -> Look:
    """Return a state's look; an unknown state has a neutral one."""
    return LOOKS.get(state) or Look("point", "neutral", state.replace("_", " "))
