// Buttons that copy a text: their own, or that of the element with the id `data-copy-of`.
import { byId, closest } from "./elements.js";
import { toast } from "./toasts.js";

document.addEventListener("click", async (event) => {
  const button = closest(event, "[data-copy], [data-copy-of]");
  if (!button) return;
  event.preventDefault();
  try {
    const { copy, copyOf } = button.dataset;
    await navigator.clipboard.writeText(copy ?? (copyOf ? byId(copyOf, HTMLElement).textContent : ""));
    toast("Copied.");
  } catch {
    toast("The browser did not allow copying.", { level: "error" }); // plain http, not on localhost
  }
});
