// How each kind of input is read into a value of the spec, and shows one. The attribute data-input names the kind.
import { findAll } from "../../shared/elements.js";
import { quote, quotedNames, readNames, writeNames } from "../../shared/names.js";

/** @param {string} text */
function number(text) {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : trimmed; // validation reports the error at the field
}

/** @param {string} text */
export function scalar(text) {
  const trimmed = text.trim();
  if (trimmed === "true" || trimmed === "yes") return true;
  if (trimmed === "false" || trimmed === "no") return false;
  return number(trimmed);
}

/** @param {string} text */
function list(text) {
  const parts = readNames(text);
  return parts.length ? parts : undefined;
}

/**
 * Return the values in a text. One in quotes is a text, also if it reads as a number.
 * @param {string} text
 */
function values(text) {
  const parts = quotedNames(text).map(({ name, isQuoted }) => (isQuoted ? name : scalar(name)));
  return parts.length ? parts : undefined;
}

/** @param {HTMLElement} input */
const boxes = (input) => findAll(input, "input[type=checkbox]", HTMLInputElement);

/** @param {unknown} value */
const text = (value) =>
  value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

/**
 * @param {unknown} value
 * @param {boolean} areScalars whether texts that read as a number or boolean are in quotes
 */
function commas(value, areScalars) {
  if (!Array.isArray(value)) return text(value);
  const isOther = (/** @type {unknown} */ item) => areScalars && typeof item === "string" && scalar(item) !== item;
  return value.map((item) => (isOther(item) ? quote(item) : writeNames([text(item)]))).join(", ");
}

/**
 * Return the labels in a text such as `gpu=h200, site=berlin`; validation reports a text that is no such list.
 * @param {string} text
 */
function labels(text) {
  const parts = text.split(",").map((part) => part.trim());
  const pairs = parts.filter(Boolean).map((part) => part.split("=").map((word) => word.trim()));
  if (!pairs.length) return undefined;
  const hasTwice = new Set(pairs.map(([key]) => key)).size < pairs.length;
  return hasTwice || pairs.some((pair) => pair.length !== 2) ? text.trim() : Object.fromEntries(pairs);
}

/** @param {unknown} value */
function labelsText(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return text(value);
  return Object.entries(value)
    .map(([key, one]) => `${key}=${text(one)}`)
    .join(", ");
}

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

/**
 * @param {HTMLElement} element
 * @returns {element is Field}
 */
export const isField = (element) => element.matches("input, select, textarea");

/** @type {Record<string, (text: string) => unknown>} */
const READ = {
  text: (text) => (text.trim() ? text : undefined),
  int: number,
  float: number,
  list,
  value: scalar,
  values,
  scale: scalar,
  labels,
  device_names: readNames,
};

/**
 * Return the value that an input holds; undefined where it is left open.
 * @param {HTMLElement} input
 * @returns {unknown}
 */
export function read(input) {
  const kind = input.dataset.input ?? "";
  if (kind === "set" || kind === "metrics") return marked(input);
  if (!isField(input)) return undefined;
  if (kind === "switch") return input instanceof HTMLInputElement && input.checked;
  if (Object.hasOwn(READ, kind)) return READ[kind](input.value);
  return input.value === "" ? undefined : JSON.parse(input.value);
}

/** @param {HTMLElement} input */
function marked(input) {
  const values = boxes(input)
    .filter((box) => box.checked)
    .map((box) => box.value);
  return values.length ? values : undefined;
}

/**
 * Show `value` in an input.
 * @param {HTMLElement} input
 * @param {unknown} value
 */
export function show(input, value) {
  const kind = input.dataset.input ?? "";
  const shown = value === undefined && input.dataset.default ? JSON.parse(input.dataset.default) : value;
  if (kind === "set") mark(input, shown);
  else if (kind === "metrics") mark(input, value);
  else if (kind === "switch" && input instanceof HTMLInputElement) input.checked = shown === true;
  else if (input instanceof HTMLSelectElement)
    // Devices by name: an input beside it shows the names.
    choose(input, kind === "devices" && Array.isArray(shown) ? [] : shown);
  else if (isField(input) && kind === "device_names") input.value = Array.isArray(value) ? commas(value, false) : "";
  else if (isField(input) && kind === "labels") input.value = labelsText(value);
  else if (isField(input))
    input.value = kind === "list" || kind === "values" ? commas(value, kind === "values") : text(value);
}

/**
 * @param {HTMLElement} input
 * @param {unknown} value
 */
function mark(input, value) {
  for (const box of boxes(input)) box.checked = Array.isArray(value) && value.includes(box.value);
}

/**
 * Choose an entry. A value that is not offered is shown all the same, so that fields and JSON agree. Null: none yet.
 * @param {HTMLSelectElement} select
 * @param {unknown} value
 */
function choose(select, value) {
  select.querySelector("[data-strange]")?.remove();
  const offered = [...select.options].map((option) => option.value);
  const isOpen = value === undefined || (value === null && !offered.includes("null"));
  const wanted = isOpen ? "" : JSON.stringify(value);
  if (!offered.includes(wanted)) {
    const option = new Option(isOpen ? "—" : `${text(value)} (not offered)`, wanted);
    option.dataset.strange = "";
    select.prepend(option);
  }
  select.value = wanted;
}

/**
 * Offer values in a select; `open` is the label of the empty entry, if there is one.
 * @template T
 * @param {HTMLSelectElement} select
 * @param {readonly T[]} values
 * @param {{ open?: string, label?: (value: T) => string }} [options]
 */
export function offer(select, values, { open, label = text } = {}) {
  const entries = values.map((value) => new Option(label(value), JSON.stringify(value)));
  if (open !== undefined) entries.unshift(new Option(open, ""));
  select.replaceChildren(...entries);
}
