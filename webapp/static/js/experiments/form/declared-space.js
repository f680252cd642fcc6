// The search space that own code declares, and how the rows of a form follow it.

/** @import { Parameter } from "./types.js" */

/**
 * Return whether two rows mean the same: the order of their fields and defaults make no difference.
 * @param {Parameter | undefined} row
 * @param {Parameter | undefined} other
 */
export function isSame(row, other) {
  const plain = (/** @type {Parameter | undefined} */ one) =>
    JSON.stringify(
      Object.entries(one ?? {})
        .filter(
          ([name, value]) => value !== null && value !== undefined && !(name === "sampling" && value === "linear"),
        )
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  return plain(row) === plain(other);
}

/**
 * Return a search space after another dry build: rows that a person has changed, added or removed stay so.
 * @param {Parameter[]} rows
 * @param {Parameter[] | null} before the rows that the build before declared; null if there was none
 * @param {Parameter[]} declared
 */
export function followed(rows, before, declared) {
  if (!rows.length) return structuredClone(declared);
  if (before === null) return rows;
  const named = (/** @type {Parameter[]} */ all, /** @type {string | undefined} */ name) =>
    all.find((one) => one.name === name);
  const kept = rows.flatMap((row) => {
    const old = named(before, row.name);
    if (!old || !isSame(row, old)) return [row];
    const now = named(declared, row.name);
    return now ? [now] : [];
  });
  const added = declared.filter(({ name }) => !named(before, name) && !named(rows, name));
  return structuredClone([...kept, ...added]);
}
