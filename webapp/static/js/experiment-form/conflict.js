// Two versions of an experiment: one button selects all values of one side.
import { byId, closest, findAll } from "../elements.js";

const form = byId("conflict", HTMLFormElement);

form.addEventListener("click", (event) => {
  const side = closest(event, "[data-all]")?.dataset.all;
  if (!side) return;
  for (const input of findAll(form, `input[type=radio][value="${side}"]`, HTMLInputElement)) input.checked = true;
});
