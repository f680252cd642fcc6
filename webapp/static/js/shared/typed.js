// A text that someone types is kept when the part of the page around it is replaced by one without its field: it moves to
// the field that the attribute data-moves-to names.
import { byId, findAll } from "./elements.js";
import { toast } from "./toasts.js";

/** The fields that a swap may remove. @type {Set<HTMLTextAreaElement>} */
const fields = new Set();

/** @param {HTMLTextAreaElement} field */
function move(field) {
  const text = field.value.trim();
  if (!text) return;
  const place = byId(field.dataset.movesTo ?? "", HTMLTextAreaElement);
  place.value = [place.value.trim(), text].filter(Boolean).join("\n\n");
  toast("What you typed is now the comment under Thread; it is not sent yet.", { level: "info" });
}

document.addEventListener("htmx:before:swap", () => {
  for (const field of findAll(document, "[data-moves-to]", HTMLTextAreaElement)) fields.add(field);
});
document.addEventListener("htmx:after:swap", () => {
  for (const field of fields) {
    if (field.isConnected) continue;
    fields.delete(field);
    move(field);
  }
});
