// Patches live parts of pages by htmx's morphing: only what differs from the new rendering is changed, so that a part is
// updated while a button in it has the focus, a field has an unsent entry or a dialog is open. Every swap `outerMorph` and
// `innerMorph` obeys these rules.
import { refresh } from "./time.js";

/** @typedef {(target: Element, fresh: DocumentFragment, inner: boolean) => void} Morph */
/** @typedef {{ morph: Morph, isSoftMatch: (old: Node, fresh: Element) => boolean }} Api */
/**
 * @typedef {{ registerExtension: (name: string, extension: object) => void, process: (element: Element) => void }} Htmx
 */

/** Elements that scripts draw and that follow their job by themselves: they keep their zoom, points and selection. */
const DRAWN = "ty-run-charts, ty-curves, ty-history, ty-trials, ty-compare, ty-charts, ty-log, ty-drawing, ty-grid";
/** A part of the table or list that is the current one of the keyboard. */
const HERE = "ty-here";

/** @type {Morph} */
let morph;
/** Whether the page updates itself; the answer to a form has the entries that the server read, in its own form. */
let isLive = false;
/** The elements that the present update has already found in the new rendering. @type {WeakSet<Element>} */
let found = new WeakSet();
let number = 0;
const { htmx } = /** @type {{ htmx: Htmx }} */ (/** @type {unknown} */ (globalThis));

/**
 * Return the subject of an element. An element never becomes one with another subject: a button that has the focus keeps
 * its effect.
 * @param {Element} element
 */
function subjectOf(element) {
  if (element instanceof HTMLFormElement) return element.getAttribute("action");
  if (element instanceof HTMLAnchorElement) return element.getAttribute("href");
  if (element instanceof HTMLButtonElement) {
    return ["data-dialog", "formaction", "name", "value"].map((name) => element.getAttribute(name)).join(" ");
  }
  if (element.matches("section")) return element.getAttribute("aria-labelledby") ?? element.getAttribute("aria-label");
  if (element instanceof HTMLTableCellElement) return String(element.cellIndex);
  if (!element.matches("tr, li")) return null;
  const named = element.matches("[data-subject]") ? element : element.querySelector("a[href], form[action]");
  return ["data-subject", "href", "action"].map((name) => named?.getAttribute(name) ?? "").join(" ");
}

/**
 * Return whether to find an element for a part of the new rendering would remove the one with the focus, which is
 * before it and is still to be found.
 * @param {Element} old
 * @param {Element} fresh
 * @param {(old: Element, fresh: Element) => boolean} isAlike
 */
function skipsFocus(old, fresh, isAlike) {
  const parent = old.parentElement;
  const { activeElement } = document;
  if (!parent?.contains(activeElement) || old.contains(activeElement)) return false;
  const held = [...parent.children].find((child) => child.contains(activeElement));
  if (!held || found.has(held) || !(held.compareDocumentPosition(old) & Node.DOCUMENT_POSITION_FOLLOWING)) return false;
  for (let next = fresh.nextElementSibling; next; next = next.nextElementSibling) if (isAlike(held, next)) return true;
  return false;
}

/**
 * Write the changes of a person into the new rendering: entries, open details, the current row.
 * @param {Element} old
 * @param {Element} fresh
 */
function carryOver(old, fresh) {
  if (old instanceof HTMLDetailsElement || old instanceof HTMLDialogElement) fresh.toggleAttribute("open", old.open);
  if (old instanceof HTMLInputElement && old.value !== old.defaultValue) {
    fresh.setAttribute("value", old.defaultValue);
  }
  if (old instanceof HTMLTextAreaElement && old.value !== old.defaultValue) fresh.textContent = old.defaultValue;
  if (old instanceof HTMLButtonElement && "whenChanged" in old.dataset)
    fresh.toggleAttribute("hidden", old.hasAttribute("hidden"));
  if (old.classList.contains(HERE)) fresh.classList.add(HERE);
}

/**
 * Give drawn elements and their counterparts in the new rendering the same id, so that they are found wherever they are
 * moved.
 * @param {Element} element
 * @param {DocumentFragment} fresh
 */
function pairDrawn(element, fresh) {
  for (const drawn of element.querySelectorAll(DRAWN)) {
    if (drawn.parentElement?.closest(DRAWN)) continue; // it is kept with the one around it
    const [job, names] = ["job", "names"].map((name) => drawn.getAttribute(name));
    const wanted = `${drawn.localName}[job="${job}"]${names === null ? "" : `[names="${CSS.escape(names)}"]`}`;
    const counterpart = fresh.querySelector(wanted);
    if (!counterpart) continue;
    drawn.id ||= `drawn-${++number}`;
    counterpart.id = drawn.id;
  }
}

htmx.registerExtension("patch", {
  /** @param {Api} api */
  init: (api) => {
    morph = api.morph;
    const { isSoftMatch } = api;
    /** @param {Node} old @param {Element} fresh */
    const isAlike = (old, fresh) =>
      isSoftMatch(old, fresh) && subjectOf(/** @type {Element} */ (old)) === subjectOf(fresh);
    api.isSoftMatch = (old, fresh) => isAlike(old, fresh) && !skipsFocus(/** @type {Element} */ (old), fresh, isAlike);
  },
  /**
   * @param {Element} old
   * @param {{ newNode: Element }} detail
   */
  htmx_before_morph_node: (old, { newNode }) => {
    found.add(old);
    if (old.matches(DRAWN)) return false;
    if (isLive) carryOver(old, newNode);
    return true;
  },
});
document.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = /** @type {CustomEvent<{ ctx: { sourceEvent?: Event } }>} */ (event).detail;
  isLive = ctx.sourceEvent?.type === "every";
  found = new WeakSet();
});

/**
 * Change the content of an element to a new rendering.
 * @param {Element} element
 * @param {string} markup
 */
export function patch(element, markup) {
  const fresh = document.createElement("template");
  fresh.innerHTML = markup;
  pairDrawn(element, fresh.content);
  isLive = true;
  found = new WeakSet();
  morph(element, fresh.content, true);
  htmx.process(element);
  refresh(element);
}
