// Formats numbers for people, as `words` on the server does.
const NONE = "–";

/**
 * Return a measured value with four significant digits.
 * @param {number | null | undefined} value
 * @param {number} digits
 */
export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? String(value) : value.toExponential(digits - 1);
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return value.toExponential(digits - 1);
  return size >= 10 ** digits
    ? value.toFixed(0)
    : value.toFixed(Math.min(Math.max(0, digits - 1 - Math.floor(Math.log10(size))), digits));
}

/**
 * Return a value that was chosen, not measured: with significant digits, without zeros at the end.
 * @param {number} value
 * @param {number} digits
 */
export const setting = (value, digits = 4) =>
  Number.isFinite(value) && !Number.isInteger(value) ? String(Number(value.toPrecision(digits))) : number(value);

const GROUPS = new Intl.NumberFormat("en"); // made once: `toLocaleString` makes one a call

/** @param {number} value */
export const grouped = (value) => GROUPS.format(value).replaceAll(",", "\u202f");

/** @param {number} count */
export const trials = (count) => `${grouped(count)} trial${count === 1 ? "" : "s"}`;

/** @type {[number, string][]} */
const STEPS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds > 0 && seconds < 0.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const at = STEPS.findIndex(([size]) => whole >= size);
  if (at < 0) return "0 s";
  const [size, unit] = STEPS[at];
  const rest = Math.floor((whole % size) / (STEPS[at + 1]?.[0] ?? 1));
  return `${Math.floor(whole / size)} ${unit}${rest && STEPS[at + 1] ? ` ${rest} ${STEPS[at + 1][1]}` : ""}`;
}

/**
 * Return the time in UTC, as the rest of the page shows it on hover.
 * @param {number} seconds
 */
export const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
