// Short notices at the lower edge. One with an undo address stays for ten seconds and offers to undo the change; refusals
// and warnings stay on the page.
import { byId, findAll } from "./elements.js";
import { post } from "./post.js";
import { showRefusal } from "./refusals.js";

const BRIEF = 4000;
const UNDO = 10000;
/** @typedef {{ level?: string, undo?: string }} Options */
/** @typedef {{ text: string } & Options} Notice */

/**
 * Show a notice.
 * @param {string} text
 * @param {Options} [options]
 */
export function toast(text, { level = "success", undo = "" } = {}) {
  if (level === "error" || level === "warning") {
    showRefusal(text, level);
    return;
  }
  const element = document.createElement("div");
  element.className = "ty-toast";
  element.dataset.level = level;
  element.textContent = text;
  if (undo) element.dataset.undo = undo;
  byId("toasts", HTMLElement).append(element);
  arm(element);
}

/**
 * Let a notice disappear by itself, or when it is clicked.
 * @param {HTMLElement} element
 */
function arm(element) {
  if (element.dataset.undo) element.append(undoButton(element));
  setTimeout(() => element.remove(), element.dataset.undo ? UNDO : BRIEF);
  element.addEventListener("click", () => element.remove());
}

/** @param {HTMLElement} element */
function undoButton(element) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm";
  button.textContent = "Undo";
  button.addEventListener("click", () => post(element.dataset.undo ?? ""));
  return button;
}

for (const element of findAll(document, "#toasts > *", HTMLElement)) arm(element);
document.addEventListener("toast", (event) => {
  const { detail } = /** @type {CustomEvent<Notice[] | { value: Notice[] } | null>} */ (event);
  for (const notice of Array.isArray(detail) ? detail : (detail?.value ?? [])) toast(notice.text, notice);
});
