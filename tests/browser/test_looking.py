"""A look at a page finds what axe calls serious; contrasts are computed elsewhere."""

import pytest
from playwright.sync_api import Browser

from tests.browser.looking import check_accessibility

PAGE = """<!DOCTYPE html><html lang="en"><title>Rows</title><main><h1>Rows</h1>
<p style="color: #eee">faint</p><label>named <input></label></main>"""


def test_a_field_without_a_name_is_found(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content(PAGE)
    check_accessibility(page)
    page.evaluate("document.querySelector('label').replaceWith(document.querySelector('input'))")
    with pytest.raises(AssertionError, match=r"^label \(.*\): input"):
        check_accessibility(page)
    page.close()
