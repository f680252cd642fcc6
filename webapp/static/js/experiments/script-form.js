// The form of a script: a button adds a row for an argument that its code does not declare, and the browser keeps the
// entries until they are submitted.
import { byId, find, findAll } from "../shared/elements.js";
import { followLists } from "../shared/listed-words.js";
import { LocalDraft, RESTORING } from "../shared/local-draft.js";

const form = find(document, ".sc-form", HTMLFormElement);
const rows = find(form, "[data-argument-rows]", HTMLElement);
const { innerHTML } = find(form, "[data-argument-row]", HTMLTemplateElement);
const total = byId("id_arguments-TOTAL_FORMS", HTMLInputElement);
const most = Number(byId("id_arguments-MAX_NUM_FORMS", HTMLInputElement).value);
const button = find(form, "[data-add-argument]", HTMLButtonElement);

function addRow() {
  const index = Number(total.value);
  const row = innerHTML.replaceAll("__prefix__", String(index)).replaceAll("__number__", String(index + 1));
  rows.insertAdjacentHTML("beforeend", row);
  total.value = String(index + 1);
  button.disabled = index + 1 >= most;
}

button.addEventListener("click", () => {
  addRow();
  findAll(rows, "[name$=-name]", HTMLInputElement).at(-1)?.focus();
});
button.disabled = Number(total.value) >= most;
followLists(form);

form.addEventListener(RESTORING, (event) => {
  const { detail } = /** @type {CustomEvent<Record<string, string>>} */ (event);
  while (Number(total.value) < Math.min(Number(detail[total.name] ?? 0), most)) addRow();
});
new LocalDraft(form);
