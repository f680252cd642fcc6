"""How training images are varied, a new random draw for each image and epoch."""

from typing import Literal

from pydantic import Field

from jobs.contracts.base import Frozen


class Augmentation(Frozen):
    """Random changes of training images, in this order; 0 leaves one out.

    Amounts reach either way: `rotation` is a part of a full turn (0.05 is up to 18°), `zoom` and
    `translation` are parts of height and width, `contrast` a part of the distance from the image's mean,
    `brightness` a part of the range of the training pixels. What moves into view repeats the edge.
    """

    flip: Literal["none", "horizontal", "vertical", "both"] = "none"
    rotation: float = Field(default=0.0, ge=0, le=0.5)
    zoom: float = Field(default=0.0, ge=0, lt=1)
    translation: float = Field(default=0.0, ge=0, lt=1)
    contrast: float = Field(default=0.0, ge=0, lt=1)
    brightness: float = Field(default=0.0, ge=0, le=1)
