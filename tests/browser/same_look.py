"""Marks texts that look like one whose contrast is known: axe computes the contrast of each look once.

Most of the time of a look at a page was the contrast of texts that differ in their words alone, and of the
navigation, which is the same on every page. Two texts look alike if they and all elements around them have
the same tags, classes and computed styles, with the same style sheets.
"""

from playwright.sync_api import Page

MARK = "data-same-look"
CONTRAST = "color-contrast"
REPORTER = "known-looks"
_known: dict[str, None] = {}
"""Hashes of the looks that axe has judged, and not found bad, on any page of this run."""

# The class decides about pseudo-elements and their backgrounds. axe leaves out labels of disabled fields, and
# texts of one character or of symbols alone: another text must not be left out because it looks like one of
# those. Texts that are not displayed have no contrast.
MARK_SAME_LOOKS = """([mark, known]) => {
    const STYLES = [
        "color", "backgroundColor", "backgroundImage", "fontSize", "fontWeight", "textShadow", "opacity",
        "visibility", "display", "position", "zIndex", "filter", "mixBlendMode", "clipPath", "transform",
    ];
    const FIELDS = new Set(["INPUT", "SELECT", "TEXTAREA"]);
    const OFF = ":disabled, [aria-disabled]";
    const labels = new Set([...document.querySelectorAll("[aria-labelledby]")].flatMap(
        (element) => (element.matches(OFF) ? element.getAttribute("aria-labelledby").split(/\\s+/) : [])));
    const hashes = new Map();
    const hashOf = (text) => {
        let found = hashes.get(text);
        if (found === undefined) {
            let [low, high] = [0xdeadbeef, 0x41c6ce57];
            for (let at = 0; at < text.length; at++) {
                const code = text.charCodeAt(at);
                low = Math.imul(low ^ code, 2654435761);
                high = Math.imul(high ^ code, 1597334677);
            }
            found = `${(low >>> 0).toString(36)}-${(high >>> 0).toString(36)}`;
            hashes.set(text, found);
        }
        return found;
    };
    const textOf = ({childNodes}) => [...childNodes].map(
        ({nodeType, data}) => (nodeType === Node.TEXT_NODE ? data.trim() : "")).join("");
    const seen = new Set(known.split(" "));
    const judged = new Map();
    const visit = (element, around) => {
        const style = getComputedStyle(element);
        if (style.display === "none") {
            for (const hidden of [element, ...element.querySelectorAll("*")]) hidden.setAttribute(mark, "");
            return;
        }
        const look = hashOf([
            around, element.tagName, element.getAttribute("class"), element.type, labels.has(element.id),
            element.matches(OFF), element.control?.disabled,
            ...STYLES.map((name) => style[name]),
        ].join("\\n"));
        element.removeAttribute(mark);
        const text = FIELDS.has(element.tagName) ? element.value || "field" : textOf(element);
        if (text) {
            const shown = element.getClientRects().length > 0;
            const kind = hashOf([look, shown, text.length > 1, /[\\p{L}\\p{N}]/u.test(text)].join());
            if (seen.has(kind)) element.setAttribute(mark, "");
            else judged.set(element, kind);
            seen.add(kind);
        }
        for (const child of element.children) visit(child, look);
    };
    const sheets = [...document.styleSheets].map(({href, ownerNode}) => href ?? ownerNode?.textContent);
    const root = document.documentElement;
    visit(root, hashOf([root.dataset.bsTheme, ...sheets].join("\\n")));
    window.judgedLooks = judged;
}"""
USE_MARKS = f"""
axe.configure({{rules: [{{id: "{CONTRAST}", selector: ":not([{MARK}])"}}]}});
axe.addReporter("{REPORTER}", (results, options, callback) => {{
    const isKnown = ({{any}}) => any.some(
        ({{data}}) => data?.contrastRatio || ["bgImage", "bgGradient"].includes(data?.messageKey));
    window.knownLooks = results.filter(({{id}}) => id === "{CONTRAST}").flatMap(({{passes, incomplete}}) =>
        [...passes, ...incomplete].filter(isKnown).map(({{node}}) => judgedLooks.get(node.element)))
        .filter(Boolean);
    axe.getReporter("v2")(results, options, callback);
}});"""
"""The reporter keeps the looks of all texts with enough contrast; axe's own report names one for each rule.

It also keeps texts on a picture or gradient, which axe can compute on no page, but not those that it cannot
compute here, such as a text that is scrolled out of sight, or that the page has drawn again meanwhile.
"""


def mark_same_looks(page: Page) -> None:
    """Mark texts of a page whose contrast axe need not compute, in its present theme."""
    page.evaluate(MARK_SAME_LOOKS, [MARK, " ".join(_known)])


def remember_known_looks(page: Page) -> None:
    """Do not compute the contrast of looks again that the last run of axe has judged, and found none bad."""
    _known.update(dict.fromkeys(page.evaluate("knownLooks")))
