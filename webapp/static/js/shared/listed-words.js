// Fields with a list of known values: each value of a text with several is completed, and those that no worker has are named.
// Whatever is typed stays: a worker that is away may have it.
import { findAll } from "./elements.js";
import { readNames } from "./names.js";

/** The known values of each list, which completions replace. @type {Map<Element, string[]>} */
const lists = new Map();

/** @param {HTMLInputElement} input */
function known({ list }) {
  if (!list) return [];
  const values = lists.get(list) ?? findAll(list, "option", HTMLOptionElement).map((option) => option.value);
  lists.set(list, values);
  return values;
}

/**
 * Offer the known values after those that the text already has: a browser completes a whole text only.
 * @param {HTMLInputElement} input
 */
function offerNext(input) {
  const before = input.value.slice(0, input.value.lastIndexOf(",") + 1).trim();
  const taken = readNames(before);
  const others = known(input).filter((value) => !taken.includes(value));
  const texts = others.map((value) => (before ? `${before} ${value}` : value));
  input.list?.replaceChildren(...texts.map((value) => Object.assign(document.createElement("option"), { value })));
}

/**
 * Return the values in a field that no worker has. A field marked `words` takes some words of a known value.
 * @param {HTMLInputElement} input
 */
export function absent(input) {
  const values = known(input);
  if (input.dataset.known !== "words") return readNames(input.value).filter((name) => !values.includes(name));
  const text = input.value.trim();
  const words = text.toLowerCase().split(/\s+/);
  const isKnown = values.some((value) => words.every((word) => value.toLowerCase().includes(word)));
  return text && !isKnown ? [text] : [];
}

/**
 * Show under a field which of its values no worker has.
 * @param {HTMLInputElement} input
 */
function showAbsent(input) {
  const field = input.closest(".ty-field");
  const id = `${input.id}-absent`;
  const note = document.getElementById(id) ?? Object.assign(document.createElement("div"), { id });
  const names = absent(input);
  note.className = "ty-warning";
  note.setAttribute("role", "status");
  note.textContent = names.length ? (input.dataset.absent ?? "").replace("{}", names.join(", ")) : "";
  if (!note.isConnected) field?.append(note);
}

/**
 * Follow the fields with known values in a form.
 * @param {HTMLFormElement} form
 */
export function followLists(form) {
  for (const input of findAll(form, "[data-listed-words]", HTMLInputElement)) {
    const update = () => offerNext(input);
    input.addEventListener("focus", update);
    input.addEventListener("input", update);
  }
  for (const input of findAll(form, "[data-absent]", HTMLInputElement)) {
    input.addEventListener("input", () => showAbsent(input));
    showAbsent(input);
  }
}
