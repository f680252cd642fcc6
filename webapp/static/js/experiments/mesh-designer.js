// The mesh designer: rules are moved by dragging and by the arrow keys; the server draws everything.
import { closest, find, findAll } from "../shared/elements.js";
import { toast } from "../shared/toasts.js";

/** The position of the rule whose handle takes the focus after the next drawing; null: none. @type {number | null} */
let moved = null;
/** The rule that is being dragged. @type {HTMLElement | null} */
let dragged = null;

const form = () => find(document, "#design", HTMLFormElement);
const rules = () => findAll(document, "[data-rule]", HTMLElement);

/** Have the server draw the design with its present fields. */
const draw = () => form().dispatchEvent(new Event("change", { bubbles: true }));

/**
 * Move a rule to another position, and draw the design.
 * @param {HTMLElement} rule
 * @param {number} to
 */
function move(rule, to) {
  const all = rules();
  const from = all.indexOf(rule);
  if (from === to || to < 0 || to >= all.length) return;
  all[to][to > from ? "after" : "before"](rule);
  moved = to;
  find(document, "[data-moved]", HTMLElement).textContent = `Rule ${from + 1} is rule ${to + 1} now.`;
  draw();
}

document.addEventListener("keydown", (event) => {
  const handle = closest(event, "[data-handle]");
  const rule = handle && closest(event, "[data-rule]");
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!rule || !step) return;
  event.preventDefault();
  move(rule, rules().indexOf(rule) + step);
});

document.addEventListener("dragstart", (event) => {
  if (!closest(event, "[data-handle]")) return;
  dragged = closest(event, "[data-rule]");
  if (!dragged || !event.dataTransfer) return;
  dragged.dataset.dragged = "";
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.dataset.rule ?? "");
  event.dataTransfer.setDragImage(dragged, 12, 12);
});

/**
 * Return the rule under the pointer, and whether the dragged one would come behind it.
 * @param {DragEvent} event
 */
function target(event) {
  const rule = dragged && closest(event, "[data-rule]");
  if (!rule) return null;
  const { top, height } = rule.getBoundingClientRect();
  return { rule, isBehind: event.clientY > top + height / 2 };
}

function forgetMarks() {
  for (const rule of rules()) delete rule.dataset.over;
}

document.addEventListener("dragover", (event) => {
  const over = target(event);
  if (!over) return;
  event.preventDefault();
  forgetMarks();
  over.rule.dataset.over = over.isBehind ? "after" : "before";
});

document.addEventListener("drop", (event) => {
  const over = target(event);
  if (!over || !dragged) return;
  event.preventDefault();
  const all = rules();
  const from = all.indexOf(dragged);
  const to = all.indexOf(over.rule) + (over.isBehind ? 1 : 0);
  move(dragged, to > from ? to - 1 : to);
});

document.addEventListener("dragend", () => {
  forgetMarks();
  if (dragged) delete dragged.dataset.dragged;
  dragged = null;
});

const WRITTEN = "input:not([type=checkbox], [type=radio]):focus";

// While own code is built, the design is fetched again, but not from under a person who writes.
document.addEventListener("htmx:before:request", (event) => {
  if (closest(event, "[data-building]") && form().querySelector(WRITTEN)) event.preventDefault();
});

/** The spec for which an estimate was requested; null: none was. @type {string | null} */
let estimated = null;

const spec = () => find(document, "[name=spec]", HTMLInputElement).value;

document.addEventListener("htmx:before:request", (event) => {
  // Later requests only ask for the state of the same estimate.
  if (closest(event, "[data-estimate] button")) estimated = spec();
});

document.addEventListener("htmx:after:swap", () => {
  find(document, "[data-outdated]", HTMLElement).hidden = estimated === null || estimated === spec();
});

/** Whether a worker is making an estimate. */
let isEstimating = false;

// An estimate finds the variables of a model that was not built before.
document.addEventListener("htmx:after:swap", () => {
  const wasEstimating = isEstimating;
  isEstimating = document.querySelector("#mesh-estimate[hx-trigger]") !== null;
  if (wasEstimating && !isEstimating && document.querySelector("[data-unbuilt]")) draw();
});

document.addEventListener("htmx:after:swap", () => {
  if (moved === null) return;
  const rule = rules()[moved];
  if (rule) find(rule, "[data-handle]", HTMLElement).focus();
  moved = null;
});

document.addEventListener("click", async (event) => {
  const link = closest(event, "[data-copy-link]")?.dataset.copyLink;
  if (!link) return;
  try {
    await navigator.clipboard.writeText(new URL(link, location.href).href);
    toast("Copied.");
  } catch {
    toast("The browser did not allow copying. The address of this page is the link.", { level: "error" });
  }
});
