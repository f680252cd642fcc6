"""The contrast of each look of a text is checked, however many texts look like an earlier one."""

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.looking import check_accessibility
from tests.browser.same_look import MARK

ROW = '<tr><td>red</td><td class="number">12</td></tr>'
PAGE = f"""<!DOCTYPE html><html lang="en"><title>Rows</title><main><h1>Rows</h1><table>{ROW * 3}</table>
<p><label class="a">off <input disabled></label> <label class="a">on <input></label></p>
<p class="gradient">unknown</p><p class="far">not seen</p></main>
<style>.gradient {{ background-image: linear-gradient(red, red) }} .far {{ position: absolute; left: -99em }}
</style>"""
SPOILED = ".a:has(:not(:disabled)) { color: #777 } tr:nth-child(2) .number { color: #bbb }"


def left_out(page: Page) -> list[str]:
    return page.locator(f"main [{MARK}]:not(input)").all_inner_texts()


def test_only_texts_that_look_like_an_earlier_one_are_left_out(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content(PAGE)
    check_accessibility(page, "light", None)
    assert left_out(page) == ["red", "12", "red", "12"]
    # On the next page the texts are left out whose contrast axe has computed, or cannot compute on any page.
    page.set_content(PAGE)
    check_accessibility(page, "light", None)
    assert left_out(page) == ["Rows", *["red", "12"] * 3, "on ", "unknown"]
    page.add_style_tag(content=SPOILED)
    both = r"(?s)color-contrast.*\.number.*color-contrast.*label"
    for _ in range(2):  # a bad look is not kept
        with pytest.raises(AssertionError, match=both) as found:
            check_accessibility(page, "light", None)
        assert str(found.value).count("color-contrast") == 2
    page.close()
