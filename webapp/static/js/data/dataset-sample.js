// Shows the dialect and the first rows of a chosen file of text before it is uploaded.
import { fetchPart } from "../shared/connection/part.js";
import { find, findAll } from "../shared/elements.js";

const TEXT = /\.(csv|tsv|tab|txt|dat|data)$/i;
const PACKED = /(?<!\.tar)\.(xlsx|xlsm|xls|gz|bz2|xz|zst)$/i;
const SAMPLE_BYTES = 64 * 1024;

/** @param {HTMLFormElement} form */
export function showSampleOf(form) {
  const place = find(form, "[data-preview]", HTMLElement);
  const input = find(form, "input[type=file]", HTMLInputElement);
  let changes = 0;
  const update = () => {
    const change = ++changes;
    // Of two changes the answer to the first may arrive last.
    show(form, place, input.files?.[0], () => change === changes);
  };
  input.addEventListener("change", update);
  // Another choice shows the rows again, read with it.
  place.addEventListener("change", update);
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLElement} place
 * @param {File | undefined} file
 * @param {() => boolean} isNewest
 */
async function show(form, place, file, isNewest) {
  const isPacked = file !== undefined && PACKED.test(file.name);
  if (!file || !(isPacked || TEXT.test(file.name))) {
    place.replaceChildren();
    return;
  }
  const query = new URLSearchParams({ all: file.size <= SAMPLE_BYTES ? "1" : "0" });
  if (isPacked) query.set("packed", "1");
  for (const select of findAll(place, "select[data-dialect]", HTMLSelectElement)) query.set(select.name, select.value);
  for (const input of findAll(place, "input[data-dialect]", HTMLInputElement)) query.set(input.name, input.value);
  const token = find(form, "[name=csrfmiddlewaretoken]", HTMLInputElement).value;
  const headers = { "X-CSRFToken": token, "Content-Type": "application/octet-stream" };
  // Only a worker unpacks a file; its form has the fields alone.
  const body = file.slice(0, isPacked ? 0 : SAMPLE_BYTES);
  const response = await fetchPart(`${place.dataset.address}?${query}`, { method: "POST", headers, body }).catch(
    () => null,
  );
  // Without a sample the file can be uploaded all the same.
  if (!response?.ok) return;
  const markup = await response.text();
  if (!isNewest()) return;
  const focused = document.activeElement?.id;
  place.innerHTML = markup;
  if (focused && place.contains(document.getElementById(focused))) document.getElementById(focused)?.focus();
}
