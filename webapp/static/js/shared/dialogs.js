// Dialogs open by a button with data-dialog, or at once when they hold a refused form. Forms with data-confirm ask
// before something is lost, and name it.
import { confirmed } from "./confirmed.js";
import { byId, closest } from "./elements.js";

const dialog = document.querySelector("dialog#confirm");

/**
 * Ask in a dialog, and return whether the answer was yes.
 * @param {HTMLDialogElement} dialog
 * @param {{ title: string, lost?: string, verb?: string }} question
 * @returns {Promise<boolean>}
 */
function ask(dialog, { title, lost = "", verb = "Continue" }) {
  byId("confirm-title", HTMLElement).textContent = title;
  byId("confirm-lost", HTMLElement).textContent = lost;
  byId("confirm-yes", HTMLElement).textContent = verb;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

document.addEventListener("click", (event) => {
  const opener = closest(event, "[data-dialog]");
  if (opener?.dataset.dialog) byId(opener.dataset.dialog, HTMLDialogElement).showModal();
  const closed = closest(event, "[data-dialog-close]")?.closest("dialog");
  // Without a dialog around it, a link that closes one leads back.
  if (closed) event.preventDefault();
  closed?.close();
});
const refused = document.querySelector("dialog[data-open-now]");
if (refused instanceof HTMLDialogElement) refused.showModal();

document.addEventListener(
  "submit",
  async (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !(dialog instanceof HTMLDialogElement)) return;
    const { confirm: title, lost, verb } = form.dataset;
    // once: the browser may bring this page back, as it was, by Back
    if (!title || confirmed.delete(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const submitter = event.submitter;
    if (!(await ask(dialog, { title, lost, verb }))) return;
    confirmed.add(form);
    if (!form.isConnected) {
      // the part of the page that held the form was replaced meanwhile
      form.hidden = true;
      document.body.append(form);
    }
    form.requestSubmit(submitter);
  },
  true,
);
