// Dialogs of a page open by a button with data-dialog, or at once when they hold a refused form. And one
// asks before something is lost, naming what: forms with data-confirm.
const dialog = document.getElementById("confirm");

function ask({ title, lost = "", verb = "Go on" }) {
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-lost").textContent = lost;
  document.getElementById("confirm-yes").textContent = verb;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
  event.target.closest("[data-dialog-close]")?.closest("dialog").close();
});
document.querySelector("dialog[data-open-now]")?.showModal();

document.addEventListener(
  "submit",
  async (event) => {
    const form = event.target;
    if (!dialog || !form.dataset.confirm || form.dataset.confirmed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const submitter = event.submitter;
    const { confirm: title, lost, verb } = form.dataset;
    if (!(await ask({ title, lost, verb }))) return;
    form.dataset.confirmed = "yes";
    if (!form.isConnected) {
      // the piece of the page that it stood in was drawn anew meanwhile
      form.hidden = true;
      document.body.append(form);
    }
    form.requestSubmit(submitter);
  },
  true,
);
