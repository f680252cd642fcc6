// Forms: the summary of errors takes the focus, selects and checkboxes marked data-submit submit at once, a button marked
// data-when-changed appears with a change of its form, and leaving a form marked data-guard with unsaved changes asks
// first; one marked data-unsaved has such changes from the start. A slug marked data-slug-of follows the field of that id.
// A checkbox marked data-check-all checks those in the rows of its table.
import { byId, findAll } from "./elements.js";

const [problems] = findAll(document, "[data-problems]", HTMLElement);
problems?.focus();
// The address may name a part of the page, to which the browser scrolls once everything is loaded.
addEventListener("load", () => problems?.scrollIntoView({ block: "center" }));

document.addEventListener("change", ({ target }) => {
  const isOurs = target instanceof HTMLSelectElement || target instanceof HTMLInputElement;
  if (isOurs && target.matches("[data-submit]")) target.form?.requestSubmit();
  if (target instanceof HTMLInputElement && target.matches("[data-check-all]")) {
    const table = target.closest("table");
    const boxes = table ? findAll(table, "tbody input[type=checkbox]", HTMLInputElement) : [];
    for (const box of boxes) box.checked = target.checked;
  }
});

/**
 * Return whether a form has other values than the page was loaded with.
 * @param {HTMLFormElement} form
 */
function isChanged(form) {
  const selects = findAll(form, "select", HTMLSelectElement);
  const inputs = findAll(form, "input", HTMLInputElement);
  return (
    selects.some((select) => !select.selectedOptions[0]?.defaultSelected) ||
    inputs.some(({ value, defaultValue }) => value !== defaultValue)
  );
}

function showWhenChanged() {
  for (const button of findAll(document, "[data-when-changed]", HTMLButtonElement))
    button.hidden = !button.form || !isChanged(button.form);
}

// The browser restores a choice when one comes back to the page, and parts of pages are replaced while they are open.
for (const type of ["input", "change", "htmx:after:swap"]) document.addEventListener(type, showWhenChanged);
addEventListener("pageshow", showWhenChanged);
showWhenChanged();

/** @param {string} name */
const slugOf = (name) =>
  name
    .normalize("NFKD")
    .replace(/[^\x20-\x7e]/g, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 63)
    .replace(/-+$/, "");

// A slug follows the name until the user writes one.
for (const slug of findAll(document, "[data-slug-of]", HTMLInputElement)) {
  const name = byId(slug.dataset.slugOf ?? "", HTMLInputElement);
  let followed = slugOf(name.value);
  name.addEventListener("input", () => {
    if (slug.value && slug.value !== followed) return;
    followed = slugOf(name.value);
    slug.value = followed;
  });
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
