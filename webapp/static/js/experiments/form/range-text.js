// Writes a numeric range as one text. The server reads such texts: jobs/spec/space/range_text.py.

/** @import { Parameter } from "./types.js" */

/** The fields that the text replaces. */
export const RANGE_PARTS = ["min", "max", "step", "sampling"];
const SMALL = 1e-3;

/** @param {unknown} value */
function number(value) {
  if (typeof value !== "number") return value === undefined || value === null ? "" : String(value);
  return value !== 0 && Math.abs(value) < SMALL ? value.toExponential() : String(value);
}

/**
 * Return the range of a hyperparameter of the kind `int` or `float`; a text that the server has not read is kept.
 * @param {Parameter} row
 */
export function rangeText({ range, min, max, step, sampling }) {
  if (range !== undefined) return String(range);
  const scale = sampling === undefined || sampling === "linear" ? "" : `${String(sampling).replaceAll("_", " ")} `;
  const steps = step === undefined || step === null ? "" : ` step ${number(step)}`;
  return `${scale}${number(min)} … ${number(max)}${steps}`;
}

/**
 * Return the values of a hyperparameter in a few words, whatever its kind.
 * @param {Parameter} row
 */
export function valuesText(row) {
  if (row.kind === "int" || row.kind === "float") return rangeText(row);
  if (row.kind === "choice") return (Array.isArray(row.values) ? row.values : []).map(String).join(", ");
  return row.kind === "boolean" ? "yes or no" : String(row.value ?? "");
}
