// Shows what keeps the page from working, the gravest first: the server does not answer, the session has ended or is that
// of another person, or live updates are interrupted. Shows also when each is over.

/** @typedef {import("./server.js").State} State */
import { byId, find } from "../elements.js";
import { toast } from "../toasts.js";
import { ask } from "./server.js";
import { askLogin, isLoggedIn, people } from "./session.js";

/** A title and a text. @typedef {[title: string, text: string]} Trouble */

const TITLES = { lost: "The connection to the server has been lost", hangs: "The server has not answered" };
const EFFECT =
  "This page is not updated, and links and buttons wait. It connects again by itself; what you entered stays here.";
const LOGGED_OUT =
  "Your session has ended, so this page is not updated. Log in in a new tab, then come back: what you entered stays here.";

const notice = byId("connection", HTMLElement);
/** @type {Record<"server" | "session" | "live", Trouble | null>} */
const troubles = { server: null, session: null, live: null };

/** @returns {Trouble | null} */
function sessionTrouble() {
  if (isLoggedIn()) return null;
  const { owner, current } = people();
  if (!current) return ["You are logged out", LOGGED_OUT];
  const text =
    `This page belongs to ${owner}, so it is not updated and nothing is sent. Log in as ${owner} in another tab, then ` +
    `come back: what you entered stays here. Or reload the page to continue as ${current}.`;
  return [`You are logged in as ${current} now`, text];
}

/** @param {string} refused what did not happen; empty if nothing was asked for */
function draw(refused = "") {
  const [title, text] = troubles.server ?? troubles.session ?? troubles.live ?? ["", ""];
  find(notice, "[data-title]", HTMLElement).textContent = title;
  find(notice, "[data-text]", HTMLElement).textContent = text;
  find(notice, "[data-refused]", HTMLElement).textContent = refused;
  // For one who is logged in, the login page leads to the home page.
  const canLogIn = troubles.session !== null && troubles.server === null && !people().current;
  find(notice, "[data-login]", HTMLElement).hidden = !canLogIn;
  if (title && !notice.matches(":popover-open")) notice.showPopover();
  if (!title && notice.matches(":popover-open")) notice.hidePopover();
}

// Hours from 0 to 23, as everywhere on the pages.
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** @param {string} title */
const since = (title) => `${title} since ${CLOCK.format(new Date())}`;

/**
 * Report why live updates are interrupted; an empty text reports that they are back.
 * @param {string} text
 */
export function reportLive(text) {
  if ((troubles.live?.[1] ?? "") === text) return;
  troubles.live = text ? [troubles.live?.[0] ?? since("No live updates"), text] : null;
  if (troubles.server || troubles.session) return;
  draw();
  if (!text) toast("Live updates are back.");
}

/**
 * Report that a link or button did nothing, and when to try again.
 * @param {string} what what did not happen, as a clause
 */
export function refuse(what) {
  if (troubles.server) draw(`${what}. Try again once the server is back.`);
  else if (troubles.session) {
    const { owner, current } = people();
    draw(`${what}. Try again once you are logged in${current ? ` as ${owner}` : ""}.`);
  }
}

document.addEventListener("ty:server", (event) => {
  const state = /** @type {CustomEvent<State>} */ (event).detail;
  if (state !== "answers") {
    if (troubles.server) return;
    troubles.server = [since(TITLES[state]), EFFECT];
    draw();
    return;
  }
  troubles.server = null;
  draw();
  toast("The server is back.");
});
document.addEventListener("ty:session", () => {
  troubles.session = sessionTrouble();
  draw();
  if (isLoggedIn()) toast("You are logged in again.");
});
find(notice, "button", HTMLElement).addEventListener("click", async () => {
  if (await ask()) askLogin();
});
