// Lists of names in one text: separated by commas, in quotes where needed, as jobs/spec/name_lists.py reads them.

/**
 * `age, "dist, km"` → `age` and `dist, km`.
 * @param {string} text
 * @returns {string[]}
 */
export function readNames(text) {
  return quotedNames(text).map(({ name }) => name);
}

/**
 * Return the names in a text, and whether each was in quotes. A quote that is not closed ends with the text.
 * @param {string} text
 * @returns {{ name: string, isQuoted: boolean }[]}
 */
export function quotedNames(text) {
  const parts = text.matchAll(/\s*(?:"((?:[^"]|"")*)"?([^,\n]*)|([^,\n]*))(?:[,\n]|$)/g);
  return [...parts]
    .map(([, quoted, rest = "", plain = ""]) => ({
      name: (quoted === undefined ? plain : quoted.replaceAll('""', '"') + rest).trim(),
      isQuoted: quoted !== undefined,
    }))
    .filter(({ name }) => name);
}

/**
 * Return the text that `readNames` reads as these names.
 * @param {readonly string[]} names
 */
export const writeNames = (names) => names.map((name) => (/^"|[,\r\n]/.test(name) ? quote(name) : name)).join(",");

/** @param {string} name */
export const quote = (name) => `"${name.replaceAll('"', '""')}"`;
