"""Declares how uploaded images become equally large arrays, and the originals' statistics."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen

IMAGE = "image"
"""The column in a data set with images, and an image's key in a request."""
FILE = "file"
"""The column with each image's path in its archive."""
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP")
"""The formats that are read, by Pillow's names. If an image is animated, its first frame is read."""
MAX_PIXELS = 50_000_000
"""An image is decoded only if its header states no more pixels."""
MAX_ORIGINAL_SIDE = 65_535
"""The largest height and width of a decoded image, as in JPEG."""
MAX_IMAGE_BYTES = 32 * 2**20
"""The largest image file, in bytes."""
MAX_SIDE = 1024
"""The largest height and width that can be chosen, in pixels."""
PROPOSED_SIDE = 224
"""The largest height and width that is proposed, in pixels."""

Fit = Literal["fit", "crop", "stretch"]
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]


class ImageOptions(Frozen):
    """The size of the images and how they get it, as a person chooses them."""

    height: Side | None = Field(default=None, description="in pixels; the median of the images if absent")
    width: Side | None = Field(default=None, description="in pixels; the median of the images if absent")
    fit: Fit = Field(
        default="fit",
        description="fit: the whole image with black edges; crop: the middle of it; stretch: distorted",
    )

    @model_validator(mode="after")
    def _has_both_sides(self) -> Self:
        if (self.height is None) != (self.width is None):
            raise ValueError("height and width belong together; give both or none")
        return self


class ImageShape(Frozen):
    """The arrays that images become: uint8 of (height, width, channels)."""

    height: Side
    width: Side
    channels: Literal[1, 3] = Field(description="1: shades of grey, 3: red, green and blue")
    fit: Fit


class Sides(Frozen):
    """The smallest, the median and the largest of the images' heights or widths, in pixels."""

    min: int
    median: int
    max: int


class Thumbnails(Frozen):
    """The layout of the file of thumbnails: one JPEG with a row of square tiles for each label.

    The file is an artifact with the role `thumbnails` of the job that read the data set.
    """

    side: int = Field(description="of a tile in pixels")
    tiles: int = Field(description="the largest number of tiles in a row")
    labels: tuple[str, ...] = Field(description="of the rows; one empty label if the target is a number")
    counts: tuple[int, ...] = Field(description="of the tiles in each row")


class ImageStatistics(Frozen):
    """Statistics of an archive of images."""

    shape: ImageShape
    heights: Sides = Field(description="of the originals")
    widths: Sides = Field(description="of the originals")
    formats: dict[str, int] = Field(description="number of images by format")
    hidden: int = Field(description="files of operating systems, such as .DS_Store, that were left out")
    thumbnails: Thumbnails
