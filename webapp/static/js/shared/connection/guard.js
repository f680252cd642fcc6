// While the server does not answer, links and forms stay on the page: the browser would show its error page, and entries
// would be lost. A link waits only if an answer is overdue; a form always asks first, also whether the session has ended.
import { confirmed } from "../confirmed.js";
import { closest } from "../elements.js";
import { refuse } from "./notice.js";
import { ask, isFresh, isSuspect } from "./server.js";
import { askLogin } from "./session.js";

/** @typedef {import("./server.js").State} State */

/** The link or form that continues after the server has answered. @type {HTMLElement | null} */
let passing = null;
/** Forms that wait for an answer: a second click must not submit them twice. @type {WeakSet<HTMLElement>} */
const waiting = new WeakSet();
const LOADING = 10000; // ms that the page of a link may take to load
/** The link that was followed last: its page may still be loading. @type {{ link: HTMLElement, at: number } | null} */
let followed = null;

/**
 * Return whether a link leads to another page of this server.
 * @param {HTMLElement | null} link
 * @returns {link is HTMLAnchorElement}
 */
function leaves(link) {
  if (!(link instanceof HTMLAnchorElement)) return false;
  const { origin, protocol, pathname, search } = location;
  const isHere = link.protocol === protocol && link.origin === origin;
  return isHere && !(link.hash && link.pathname === pathname && link.search === search);
}

/** @param {HTMLElement | null} element */
const nameOf = (element) => (element?.getAttribute("aria-label") ?? element?.textContent ?? "").trim().slice(0, 60);

/** @param {MouseEvent} event */
async function onClick(event) {
  const link = closest(event, "a[href]");
  if (event.defaultPrevented || link === passing || !leaves(link)) return;
  if (!isSuspect()) {
    if (event.type === "click" && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      followed = { link, at: performance.now() };
    }
    return;
  }
  event.preventDefault();
  event.stopImmediatePropagation();
  if (await ask()) pass(link, () => link.click());
  else refuse(`“${nameOf(link)}” was not opened`);
}

/** @param {SubmitEvent} event */
async function onSubmit(event) {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form === passing || form.getAttribute("method") === "dialog") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (waiting.has(form)) return;
  const { submitter } = event;
  waiting.add(form);
  const isReady = (await ask()) && (form.method === "get" || (await askLogin()));
  waiting.delete(form);
  if (!isReady) {
    confirmed.delete(form);
    refuse(`“${nameOf(submitter)}” was not sent`);
    return;
  }
  if (!form.isConnected) {
    form.hidden = true; // the part of the page that held the form was replaced meanwhile
    document.body.append(form);
  }
  pass(form, () => form.requestSubmit(submitter));
}

/**
 * @param {HTMLElement} element
 * @param {() => void} act
 */
function pass(element, act) {
  passing = element;
  act();
  passing = null;
}

/**
 * Open another page as a link would, for marks of a chart.
 * @param {string} address
 */
export function go(address) {
  const link = Object.assign(document.createElement("a"), { href: address, textContent: "The page", hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}

document.addEventListener("click", onClick, true);
document.addEventListener("auxclick", onClick, true);
document.addEventListener("submit", onSubmit, true);
// The answer to a request from the press of the pointer is known when the click follows.
document.addEventListener(
  "pointerdown",
  (event) => {
    if (!isFresh() && closest(event, "a[href], button")) ask();
  },
  true,
);
document.addEventListener("ty:server", (event) => {
  const { detail } = /** @type {CustomEvent<State>} */ (event);
  if (detail !== "hangs" || !followed || performance.now() - followed.at > LOADING) return;
  // Otherwise the page that is loading would end as the browser's error page.
  window.stop();
  refuse(`“${nameOf(followed.link)}” was not opened`);
  followed = null;
});
