// How each kind of input is read into a value of the spec, and shows one.

function number(text) {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : trimmed; // the judge says at the field what is wrong with it
}

export function scalar(text) {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (trimmed === "true" || trimmed === "yes") return true;
  if (trimmed === "false" || trimmed === "no") return false;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : trimmed;
}

function list(text, read = (part) => part) {
  const parts = text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
  return parts.length ? parts.map(read) : undefined;
}

const boxes = (input) => [...input.querySelectorAll("input[type=checkbox]")];
const text = (value) =>
  value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
const commas = (value) => (Array.isArray(value) ? value.map(text).join(", ") : text(value));

const READ = {
  text: (input) => (input.value.trim() ? input.value : undefined),
  int: (input) => number(input.value),
  float: (input) => number(input.value),
  list: (input) => list(input.value),
  value: (input) => scalar(input.value),
  values: (input) => list(input.value, scalar),
  scale: (input) => scalar(input.value),
  switch: (input) => input.checked,
  set: (input) => marked(input),
  metrics: (input) => marked(input),
};
const chosen = (input) => (input.value === "" ? undefined : JSON.parse(input.value));

function marked(input) {
  const values = boxes(input)
    .filter((box) => box.checked)
    .map((box) => box.value);
  return values.length ? values : undefined;
}

/** Return the value that an input holds; undefined where it is left open. */
export function read(input) {
  return (READ[input.dataset.input] ?? chosen)(input);
}

/** Show `value` in an input without touching what the reader is typing elsewhere. */
export function show(input, value) {
  const kind = input.dataset.input;
  const shown = value === undefined && input.dataset.default ? JSON.parse(input.dataset.default) : value;
  if (kind === "switch") input.checked = shown === true;
  else if (kind === "set") mark(input, shown);
  else if (kind === "metrics") mark(input, value);
  else if (["list", "values"].includes(kind)) input.value = commas(value);
  else if (input instanceof HTMLSelectElement) choose(input, shown);
  else input.value = text(value);
}

function mark(input, value) {
  for (const box of boxes(input)) box.checked = Array.isArray(value) && value.includes(box.value);
}

/** Choose an entry; what is not offered is shown all the same, so that fields and JSON agree. */
function choose(select, value) {
  select.querySelector("[data-strange]")?.remove();
  const wanted = value === undefined ? "" : JSON.stringify(value);
  const offered = [...select.options].some((option) => option.value === wanted);
  if (!offered) {
    const option = new Option(value === undefined ? "—" : `${text(value)} (not offered)`, wanted);
    option.dataset.strange = "";
    select.prepend(option);
  }
  select.value = wanted;
}

/** Offer values in a select; `open` is the label of the empty entry, if it may be left open. */
export function offer(select, values, { open, label = text } = {}) {
  const entries = values.map((value) => new Option(label(value), JSON.stringify(value)));
  if (open !== undefined) entries.unshift(new Option(open, ""));
  select.replaceChildren(...entries);
}
