"""The contrast of each look of a text is checked, however many texts look like an earlier one."""

import pytest
from playwright.sync_api import Browser

from tests.browser.looking import check_accessibility
from tests.browser.same_look import MARK

ROW = '<tr><td>red</td><td class="number">12</td></tr>'
PAGE = f"""<!DOCTYPE html><html lang="en"><title>Rows</title><main><h1>Rows</h1><table>{ROW * 3}</table>
<p><label class="a">off <input disabled></label> <label class="a">on <input></label></p></main>"""


def test_only_texts_that_look_like_an_earlier_one_are_left_out(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content(PAGE)
    check_accessibility(page, "light", None)
    marked = page.locator(f"[{MARK}]").all_inner_texts()
    assert marked == ["red", "12", "red", "12"]
    page.add_style_tag(
        content=".a:has(:not(:disabled)) { color: #777 } tr:nth-child(2) .number { color: #bbb }"
    )
    with pytest.raises(AssertionError, match=r"(?s)color-contrast.*\.number.*color-contrast.*label") as found:
        check_accessibility(page, "light", None)
    assert str(found.value).count("color-contrast") == 2
    page.close()
