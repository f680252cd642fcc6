// `/` and Ctrl-K search, j/k move through rows, x selects, Enter opens, c compares, ? lists all keys.
import { closest, findAll } from "./elements.js";

const TYPING = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true]";

/**
 * Return whether a key is typed into a field. An editor's field is in a shadow root, which `target` hides.
 * @param {KeyboardEvent} event
 */
const isTyped = (event) => event.composedPath().some((part) => part instanceof Element && part.matches(TYPING));

function rows() {
  return findAll(document, "table[data-rows] tbody tr", HTMLElement).filter((row) => row.offsetParent);
}

/** @param {number} step */
function move(step) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((row) => row.classList.contains("ty-here"));
  const next = Math.min(Math.max(now + step, 0), all.length - 1);
  if (next === now) {
    // A table with further pages turns the page, and marks the row there.
    all[now].dispatchEvent(new CustomEvent("ty:edge", { bubbles: true, detail: step }));
    return;
  }
  all[now]?.classList.remove("ty-here");
  all[next].classList.add("ty-here");
  all[next].scrollIntoView({ block: "nearest" });
}

/**
 * Return the first element in the current row that matches.
 * @param {string} selector
 */
const here = (selector) => findAll(document, `.ty-here ${selector}`, HTMLElement)[0];

/** @type {Record<string, () => void>} */
const KEYS = {
  "/": () => document.getElementById("site-search")?.focus(),
  "?": () => findAll(document, "dialog#keys", HTMLDialogElement)[0]?.showModal(),
  j: () => move(1),
  k: () => move(-1),
  x: () => here("input[type=checkbox]")?.click(),
  Enter: () => (here("a[data-open]") ?? here("a"))?.click(),
  c: () => findAll(document, '[data-key="c"]', HTMLElement)[0]?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    KEYS["/"]();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyped(event)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && (closest(event, "a, button, summary, input") || !here("a"))) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", (event) => {
  if (closest(event, "[data-keys]")) KEYS["?"]();
});
