// Short notices at the lower edge. One with an undo address stays ten seconds and takes the change back.
import { post } from "./post.js";

const BRIEF = 4000;
const UNDO = 10000;
const place = document.getElementById("toasts");

export function toast(text, { level = "success", undo = "" } = {}) {
  const element = document.createElement("div");
  element.className = "ty-toast";
  element.dataset.level = level;
  element.textContent = text;
  if (undo) element.dataset.undo = undo;
  place.append(element);
  arm(element);
}

function arm(element) {
  if (element.dataset.undo) element.append(undoButton(element));
  const stays = element.dataset.undo || element.dataset.level === "error" ? UNDO : BRIEF;
  setTimeout(() => element.remove(), stays);
  element.addEventListener("click", () => element.remove());
}

function undoButton(element) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm";
  button.textContent = "Undo";
  button.addEventListener("click", () => post(element.dataset.undo));
  return button;
}

for (const element of place?.children ?? []) arm(element);
document.addEventListener("toast", (event) => {
  for (const item of event.detail?.value ?? event.detail ?? []) toast(item.text, item);
});
