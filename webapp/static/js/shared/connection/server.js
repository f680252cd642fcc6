// Asks the server every second whether it answers. A server that is gone refuses at once; one that hangs has not answered
// after PATIENCE, so that both are known within 3 s. Pages in the background do not ask.
import { address } from "../addresses.js";

const PLACE = "/healthz";
const INTERVAL = 700; // ms from an answer to the next request
const PATIENCE = 1800; // ms until a request counts as unanswered
const FRESH = 300; // ms for which an answer is believed at a click
const LATE = 300; // ms after which the answer to a running request is late

/** @typedef {"answers" | "lost" | "hangs"} State */

/** @type {State} */
let state = "answers";
/** @type {Promise<boolean> | null} */
let running = null;
let asked = 0;
let answered = performance.now();
let timer = 0;
let isLeaving = false;

/** Return whether the last answer is so new that the next request will be answered, too. */
export const isFresh = () => state === "answers" && performance.now() - answered < FRESH;

/** Return whether the server does not answer, or is late to. */
export const isSuspect = () => state !== "answers" || (running !== null && performance.now() - asked > LATE);

/** Return whether the server answered the last request. */
export const answers = () => state === "answers";

/**
 * Ask the server now; return whether it answers.
 * @returns {Promise<boolean>}
 */
export function ask() {
  running ??= request().finally(() => {
    running = null;
    plan();
  });
  return running;
}

async function request() {
  clearTimeout(timer);
  asked = performance.now();
  const found = await answer();
  if (found === "lost" && isLeaving) {
    // The browser ends the requests of a page that is being left. Asked again, in case the page stays.
    isLeaving = false;
    timer = setTimeout(ask, INTERVAL);
    return false;
  }
  if (found === "answers") answered = performance.now();
  change(found);
  return found === "answers";
}

/** @returns {Promise<State>} */
async function answer() {
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    // A proxy may redirect to its login page, which is an answer, or report with 502 to 504 that the server is gone.
    const { status } = await fetch(address(PLACE), { cache: "no-store", redirect: "manual", signal });
    return status < 500 ? "answers" : "lost";
  } catch (error) {
    return error instanceof DOMException && error.name === "TimeoutError" ? "hangs" : "lost";
  }
}

/** @param {State} next */
function change(next) {
  if (next === state) return;
  state = next;
  document.dispatchEvent(new CustomEvent("ty:server", { detail: state }));
}

function plan() {
  clearTimeout(timer);
  if (document.visibilityState === "visible") timer = setTimeout(ask, INTERVAL);
}

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") ask();
});
for (const type of ["online", "offline", "pageshow"]) addEventListener(type, () => ask());
addEventListener("beforeunload", () => {
  isLeaving = true;
});
