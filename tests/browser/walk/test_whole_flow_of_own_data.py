"""Images of one's own, from their file to a served model that answers a picture, without code.

Tables, texts and time series go the same way in one process: `tests/engine/test_short_flows.py`.
"""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.walk.cast import Cast
from tests.browser.walk.own_data import ask, open_try_it, train, upload
from tests.flow.yard import RunningYard
from tests.images import folders, zipped

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1800)]


def test_a_zip_of_images_in_folders(installation: RunningYard, cast: Cast, tmp_path: Path) -> None:
    files = folders(count=40)
    upload(cast.ada, "colours.zip", zipped(tmp_path / "colours.zip", files).read_bytes())
    expect(cast.ada.page.get_by_role("img", name="images of green")).to_be_visible()
    model = train(cast.ada, "Convolutional network", epochs=40, learning_rate=0.01)
    installation.promote(model, 1)
    open_try_it(cast.ada, model)
    new = folders(count=1, seed=9)
    for colour in ("red", "blue"):
        picture = {"name": "new.png", "mimeType": "image/png", "buffer": new[f"{colour}/{colour}_0.png"]}
        cast.ada.page.get_by_label("image", exact=True).set_input_files(picture)  # type: ignore[arg-type]
        expect(ask(cast.ada)).to_have_text(colour)
    cast.ada.check_page("own-images-try")
