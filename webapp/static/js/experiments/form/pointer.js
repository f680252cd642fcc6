// JSON pointers: read and write a value, write JSON compactly, and find the line of a pointer in a text.

/** @param {string} pointer */
const names = (pointer) =>
  pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));

/**
 * Return an entry. A column may be named like a property that every object inherits, such as `__proto__`.
 * @param {object} here
 * @param {string} name
 * @returns {unknown}
 */
export const own = (here, name) =>
  Object.hasOwn(here, name) ? /** @type {Record<string, unknown>} */ (here)[name] : undefined;

/**
 * @param {object} here
 * @param {string} name
 * @param {unknown} value
 */
const set = (here, name, value) =>
  Object.defineProperty(here, name, { value, writable: true, enumerable: true, configurable: true });

/**
 * @param {unknown} root
 * @param {string} pointer
 * @returns {unknown}
 */
export function get(root, pointer) {
  let here = root;
  for (const name of names(pointer)) {
    if (here === null || typeof here !== "object") return undefined;
    here = own(here, name);
  }
  return here;
}

/**
 * Set the value at a pointer, making objects on the way; `undefined` deletes the entry.
 * @param {object} root
 * @param {string} pointer
 * @param {unknown} value
 */
export function put(root, pointer, value) {
  const path = names(pointer);
  const last = path.pop() ?? "";
  let here = /** @type {Record<string, unknown>} */ (root);
  for (const name of path) {
    const held = own(here, name);
    if (held === null || typeof held !== "object") {
      if (value === undefined) return;
      set(here, name, {});
    }
    here = /** @type {Record<string, unknown>} */ (own(here, name));
  }
  if (value === undefined) delete here[last];
  else set(here, last, value);
}

/** @param {string} pointer */
export const parent = (pointer) => pointer.slice(0, pointer.lastIndexOf("/"));

const WIDTH = 52;

/**
 * Write JSON; what fits on one line is written on one line.
 * @param {unknown} value
 * @param {string} indent
 * @returns {string}
 */
export function write(value, indent = "") {
  const flat = inline(value);
  if (flat.length + indent.length <= WIDTH || value === null || typeof value !== "object") return flat;
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => deeper + write(item, deeper)).join(",\n")}\n${indent}]`;
  }
  const lines = Object.entries(value).map(([key, item]) => `${deeper}${JSON.stringify(key)}: ${write(item, deeper)}`);
  return `{\n${lines.join(",\n")}\n${indent}}`;
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function inline(value) {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const parts = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${inline(item)}`);
  return parts.length ? `{${parts.join(", ")}}` : "{}";
}

/**
 * Map each pointer of a valid JSON text to the offset where its entry begins.
 * @param {string} text
 */
export function places(text) {
  /** @type {Map<string, number>} */
  const found = new Map();
  let at = 0;
  const space = () => {
    while (/\s/.test(text[at] ?? "")) at += 1;
  };
  const string = () => {
    const from = at;
    at += 1;
    while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    at += 1;
    return JSON.parse(text.slice(from, at));
  };
  const scalar = () => {
    while (at < text.length && !/[,\]}\s]/.test(text[at])) at += 1;
  };
  /**
   * @param {string} pointer
   * @param {string} end
   */
  const items = (pointer, end) => {
    at += 1;
    for (let index = 0; ; index += 1) {
      space();
      if (text[at] === end) break;
      const from = at;
      let name = String(index);
      if (end === "}") {
        name = string();
        space();
        at += 1;
      }
      const inner = `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      found.set(inner, from);
      value(inner);
      space();
      if (text[at] === ",") at += 1;
    }
    at += 1;
  };
  /** @param {string} pointer */
  const value = (pointer) => {
    space();
    if (text[at] === "{") items(pointer, "}");
    else if (text[at] === "[") items(pointer, "]");
    else if (text[at] === '"') string();
    else scalar();
  };
  found.set("", 0);
  value("");
  return found;
}

/**
 * Return the offset of a pointer, or of the nearest entry around it that the text has.
 * @param {Map<string, number>} found
 * @param {string} pointer
 */
export function nearest(found, pointer) {
  let here = pointer;
  while (here && !found.has(here)) here = parent(here);
  return found.get(here) ?? 0;
}
