// Forms: the summary of errors takes the focus, selects marked data-submit submit at once, a button marked
// data-when-changed appears with a change of its form, and leaving a form marked data-guard with unsaved changes asks
// first; one marked data-unsaved has such changes from the start.
import { findAll } from "./elements.js";

findAll(document, "[data-problems]", HTMLElement)[0]?.focus();

document.addEventListener("change", ({ target }) => {
  if (target instanceof HTMLSelectElement && target.matches("[data-submit]")) target.form?.requestSubmit();
});

for (const button of findAll(document, "[data-when-changed]", HTMLButtonElement)) {
  const selects = findAll(button.form ?? document, "select", HTMLSelectElement);
  const show = () => {
    button.hidden = selects.every((select) => select.selectedOptions[0]?.defaultSelected);
  };
  button.form?.addEventListener("change", show);
  addEventListener("pageshow", show); // the browser restores a choice when one comes back to the page
  show();
}

const guarded = findAll(document, "form[data-guard]", HTMLFormElement)[0];
if (guarded) {
  let changed = "unsaved" in guarded.dataset;
  guarded.addEventListener("input", () => {
    changed = true;
  });
  guarded.addEventListener("submit", () => {
    changed = false;
  });
  addEventListener("beforeunload", (event) => {
    if (changed) event.preventDefault();
  });
}
