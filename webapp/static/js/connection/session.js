// Asks whether the person is still logged in, before a form is sent: after the end of the session, the login page would
// take the place of the page and of its entries.
import { find, findAll } from "../elements.js";

/** Where to ask; undefined on pages for people who are not logged in. */
const address = findAll(document, "[data-session]", HTMLElement)[0]?.dataset.session;
let loggedIn = true;

/** Return whether the person was logged in when it was asked last. */
export const isLoggedIn = () => loggedIn;

/**
 * Ask the server whether the person is logged in.
 * @returns {Promise<boolean>}
 */
export async function askLogin() {
  if (!address) return true;
  const response = await fetch(address, { cache: "no-store" }).catch(() => null);
  if (!response?.ok) return loggedIn;
  const { csrf } = await response.json();
  if (csrf) renewTokens(csrf);
  change(csrf !== null);
  return loggedIn;
}

/**
 * Give the forms of the page the token of the present session: a login in another tab has replaced theirs.
 * @param {string} token
 */
function renewTokens(token) {
  find(document, 'meta[name="csrf-token"]', HTMLMetaElement).content = token;
  for (const input of findAll(document, "input[name=csrfmiddlewaretoken]", HTMLInputElement)) input.value = token;
}

/** @param {boolean} next */
function change(next) {
  if (next === loggedIn) return;
  loggedIn = next;
  document.dispatchEvent(new Event("ty:session"));
}

// A part of the page was refused.
document.addEventListener("ty:logout", () => change(false));
// The person comes back from the tab of the login.
document.addEventListener("visibilitychange", () => {
  if (!loggedIn && document.visibilityState === "visible") askLogin();
});
