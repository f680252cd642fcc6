"""Groups a profile's offers: several answers to one finding are buttons under one sentence."""

from collections.abc import Sequence
from typing import NamedTuple

from jobs.spec.data.offers import Offer


class Button(NamedTuple):
    """A button that accepts an offer.

    Attributes:
        position: the offer's place in the profile; the address of the button has it.
        label: the text.
    """

    position: int
    label: str


class OfferGroup(NamedTuple):
    """A finding, and a button for each of its offers."""

    finding: str
    buttons: list[Button]

    @property
    def position(self) -> int:
        """Return the place of the first offer, which names the sentence in the page."""
        return self.buttons[0].position


def group_offers(offers: Sequence[Offer]) -> list[OfferGroup]:
    """Return the offers by finding, in the order in which the findings come first."""
    groups: dict[str, OfferGroup] = {}
    for position, offer in enumerate(offers):
        group = groups.setdefault(offer.finding, OfferGroup(offer.finding, []))
        group.buttons.append(Button(position, offer.label))
    return [*groups.values()]
