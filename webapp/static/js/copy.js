// Buttons that copy the text beside them.
import { closest } from "./elements.js";
import { toast } from "./toasts.js";

document.addEventListener("click", async (event) => {
  const button = closest(event, "[data-copy]");
  if (!button) return;
  event.preventDefault();
  try {
    await navigator.clipboard.writeText(button.dataset.copy ?? "");
    toast("Copied.");
  } catch {
    toast("The browser did not allow copying.", { level: "error" }); // plain http, not on localhost
  }
});
