"""The users in a whole flow."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.browser.visitor import Visitor

PATIENCE = 300_000  # ms, for each wait on a shared machine


@dataclass
class Cast:
    """The users by name, each with a browser context of their own."""

    enter: Callable[[str], Visitor]
    met: dict[str, Visitor] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Visitor:
        if name not in self.met:
            self.met[name] = self.enter(name)
        return self.met[name]
