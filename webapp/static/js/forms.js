// Forms: the summary of errors takes the focus, selects marked data-submit send at once, and leaving a
// form marked data-guard with unsaved changes asks.
document.querySelector("[data-problems]")?.focus();

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});

const guarded = document.querySelector("form[data-guard]");
if (guarded) {
  let changed = false;
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
