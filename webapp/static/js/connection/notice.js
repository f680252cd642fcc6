// Shows that the server does not answer, or that live updates are interrupted, and when they are back.

/** @typedef {import("./server.js").State} State */
import { byId, find } from "../elements.js";
import { toast } from "../toasts.js";
import { ask } from "./server.js";

const TITLES = { lost: "The connection to the server is lost", hangs: "The server does not answer" };
const EFFECT =
  "This page is not updated, and links and buttons wait. It connects again by itself; what you entered stays here.";

const notice = byId("connection", HTMLElement);
/** What live updates report, which matters only while the server answers. */
let live = "";
/** @type {State} */
let server = "answers";

/**
 * @param {string} title
 * @param {string} text
 */
function show(title, text) {
  find(notice, "[data-title]", HTMLElement).textContent = title;
  find(notice, "[data-text]", HTMLElement).textContent = text;
  find(notice, "[data-refused]", HTMLElement).textContent = "";
  if (!notice.matches(":popover-open")) notice.showPopover();
}

function hide() {
  if (notice.matches(":popover-open")) notice.hidePopover();
}

const now = () => new Date().toLocaleTimeString();

/**
 * Report why live updates are interrupted; an empty text reports that they are back.
 * @param {string} text
 */
export function reportLive(text) {
  const before = live;
  live = text;
  if (server !== "answers" || before === live) return;
  if (live) {
    show(`No live updates since ${now()}`, live);
  } else {
    hide();
    toast("Live updates are back.");
  }
}

/**
 * Report that a link or button did nothing because the server does not answer.
 * @param {string} what what did not happen, as a clause
 */
export function refuse(what) {
  if (server === "answers") return;
  find(notice, "[data-refused]", HTMLElement).textContent = `${what}. Try again once the server is back.`;
}

document.addEventListener("ty:server", (event) => {
  const before = server;
  server = /** @type {CustomEvent<State>} */ (event).detail;
  if (server !== "answers") {
    if (before === "answers") show(`${TITLES[server]} since ${now()}`, EFFECT);
    return;
  }
  hide();
  toast("The server is back.");
  if (live) show("No live updates", live);
});
find(notice, "button", HTMLElement).addEventListener("click", () => ask());
