// Asks whether the person of this page is still logged in, before a form is sent: after the end of the session, the login
// page would take the place of the page and of its entries. If another person has logged in in another tab, nothing is
// sent: it would be done in the name of that person.
import { find, findAll } from "../elements.js";

/** Missing on pages for people who are not logged in. */
const frame = findAll(document, "[data-session]", HTMLElement)[0];
/** The name of the person for whom the page was made. */
const owner = frame?.dataset.user ?? "";
/** The name of the person who was logged in when it was asked last; empty for no one. */
let current = owner;

/** Return whether the person of this page was logged in when it was asked last. */
export const isLoggedIn = () => current === owner;

/** Return the names of the person of this page, and of the one who is logged in now, which may be empty. */
export const people = () => ({ owner, current });

/**
 * Ask the server whether the person of this page is logged in.
 * @returns {Promise<boolean>}
 */
export async function askLogin() {
  if (!frame?.dataset.session) return true;
  const response = await fetch(frame.dataset.session, { cache: "no-store" }).catch(() => null);
  if (!response?.ok) return isLoggedIn();
  const { csrf, user } = await response.json();
  if (user === owner) renewTokens(csrf);
  change(user ?? "");
  return isLoggedIn();
}

/**
 * Give the forms of the page the token of the present session: a login in another tab has replaced theirs.
 * @param {string} token
 */
function renewTokens(token) {
  find(document, 'meta[name="csrf-token"]', HTMLMetaElement).content = token;
  for (const input of findAll(document, "input[name=csrfmiddlewaretoken]", HTMLInputElement)) input.value = token;
}

/** @param {string} next */
function change(next) {
  if (next === current) return;
  current = next;
  document.dispatchEvent(new Event("ty:session"));
}

// A part of the page was refused. Perhaps it was asked for before a login in another tab, so its answer does not show who is
// logged in now.
document.addEventListener("ty:logout", () => askLogin());
// The person comes back from another tab or window, or with Back to a page that the browser has kept.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") askLogin();
});
addEventListener("focus", () => askLogin());
addEventListener("pageshow", (event) => {
  if (event.persisted) askLogin();
});
