"""Declares random augmentation for training images, with new values for each image and epoch."""

from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen


class Augmentation(Frozen):
    """Random changes of training images, applied in this order; 0 switches one off.

    Each amount is a maximum in both directions: `rotation` is a fraction of a full turn (0.05 is up to 18°),
    `zoom` and `translation` are fractions of height and width, `contrast` of the distance from the image's
    mean, `brightness` of the range of the training pixels. New pixels repeat the nearest edge.
    """

    flip: Literal["none", "horizontal", "vertical", "both"] = "none"
    rotation: float = Field(default=0.0, ge=0, le=0.5)
    zoom: float = Field(default=0.0, ge=0, lt=1)
    translation: float = Field(default=0.0, ge=0, lt=1)
    contrast: float = Field(default=0.0, ge=0, lt=1)
    brightness: float = Field(default=0.0, ge=0, le=1)
