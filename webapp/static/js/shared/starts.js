// Links and forms marked data-start open the plan of their work in a dialog. Without this script, each is a page.
import { refuse } from "./connection/notice.js";
import { answers } from "./connection/server.js";
import { isLoggedIn } from "./connection/session.js";
import { byId, closest } from "./elements.js";

// Pages outside the frame, such as the login, start nothing and have no dialog.
const startDialog = () => byId("start", HTMLDialogElement);
let asked = 0;

/** @param {string} address */
async function openStart(address) {
  if (!answers() || !isLoggedIn()) return refuse("Nothing was started");
  asked += 1;
  const mine = asked;
  /** @type {Response} */
  let response;
  try {
    response = await fetch(address, { headers: { "HX-Request": "true" } });
  } catch {
    return refuse("Nothing was started");
  }
  // Asked for as a page, the server leads back to this one, with the reason at the field or the button.
  if (response.status !== 200) return location.assign(address);
  const markup = await response.text();
  // Only the button that was pressed last opens the dialog.
  if (mine !== asked) return;
  const dialog = startDialog();
  dialog.innerHTML = markup;
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const link = closest(event, "a[data-start]");
  if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  openStart(link.href);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  if (form.closest("dialog#start")) {
    // A second press would start it twice.
    if ("sent" in form.dataset) event.preventDefault();
    form.dataset.sent = "";
  } else if ("start" in form.dataset) {
    event.preventDefault();
    const address = new URL(form.action);
    for (const [name, value] of new FormData(form)) address.searchParams.append(name, String(value));
    form.closest("dialog")?.close();
    openStart(address.href);
  }
});
// Back shows the page as it was: the form may be sent again.
addEventListener("pageshow", () => {
  if (document.querySelector("dialog#start[open]")) startDialog().close();
});
