// Buttons that copy what they stand beside.
import { toast } from "./toasts.js";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  event.preventDefault();
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    toast("Copied.");
  } catch {
    toast("The browser did not allow copying.", { level: "error" }); // plain http, not on localhost
  }
});
