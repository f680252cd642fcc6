"""Marks texts that look like an earlier one on the page, so that axe computes the contrast of each look once.

Most of the time of a look at a page was the contrast of rows that differ in their words alone. Two texts look
alike if they and all elements around them have the same tags, classes and computed styles.
"""

from playwright.sync_api import Page

MARK = "data-same-look"

# The class decides about pseudo-elements and their backgrounds. axe leaves out labels of disabled fields, and
# texts of one character or of symbols alone: another text must not be left out because it looks like one of
# those. An element with an id may be a label, too.
MARK_SAME_LOOKS = """mark => {
    const STYLES = [
        "color", "backgroundColor", "backgroundImage", "fontSize", "fontWeight", "textShadow", "opacity",
        "visibility", "display", "position", "zIndex", "filter", "mixBlendMode", "clipPath", "transform",
    ];
    const FIELDS = new Set(["INPUT", "SELECT", "TEXTAREA"]);
    const numbers = new Map();
    const seen = new Set();
    const numberOf = (text) => numbers.get(text) ?? numbers.set(text, numbers.size).get(text);
    const textOf = ({childNodes}) => [...childNodes].map(
        ({nodeType, data}) => (nodeType === Node.TEXT_NODE ? data.trim() : "")).join("");
    const visit = (element, around) => {
        const style = getComputedStyle(element);
        const look = numberOf(JSON.stringify([
            around, element.tagName, element.id, element.getAttribute("class"), element.type,
            element.matches(":disabled, [aria-disabled]"), element.control?.disabled,
            ...STYLES.map((name) => style[name]),
        ]));
        element.removeAttribute(mark);
        const text = FIELDS.has(element.tagName) ? element.value || "field" : textOf(element);
        if (text) {
            const shown = element.getClientRects().length > 0;
            const kind = [look, shown, text.length > 1, /[\\p{L}\\p{N}]/u.test(text)].join();
            if (seen.has(kind)) element.setAttribute(mark, "");
            seen.add(kind);
        }
        for (const child of element.children) visit(child, look);
    };
    visit(document.documentElement, 0);
}"""
USE_MARKS = f"""axe.configure({{rules: [{{id: "color-contrast", selector: ":not([{MARK}])"}}]}})"""


def mark_same_looks(page: Page) -> None:
    """Mark texts of a page whose contrast axe need not compute, in its present theme."""
    page.evaluate(MARK_SAME_LOOKS, MARK)
