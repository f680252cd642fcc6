// The axes of a chart as its settings describe them: logarithmic or linear, their range, smoothing, and outliers.

/** @import { Direction } from "./types.js" */
import { settings } from "./settings.js";

/** @typedef {"x" | "y" | "z"} AxisName */
/** An axis; undefined parts follow the data. @typedef {{ log?: boolean, low?: number, high?: number }} Scale */
/** An axis that a chart lets people change. @typedef {{ axis: AxisName, label: string, log?: boolean, range?: boolean }} AxisOffer */
/** The controls that a chart has. @typedef {{ scales?: AxisOffer[], smoothing?: boolean, outliers?: "drawn" | "hidden" }} Offer */
/** The worst value that is not an outlier, and how many are. @typedef {{ at: number, beyond: number }} Fence */

const FEW = 8; // with fewer values, none is an outlier
const FAR = 3; // times the distance between the quartiles (Tukey's outer fence)
const MOST_SMOOTH = 0.99;

/**
 * Return the scale of an axis of a chart.
 * @param {string} chart
 * @param {AxisName} axis
 * @returns {Scale}
 */
export function scaleOf(chart, axis) {
  const log = settings.get(chart, `${axis}log`);
  const [low, high] = (settings.get(chart, `${axis}range`) ?? "").split("..");
  return { log: log === undefined ? undefined : log === "on", low: finite(low), high: finite(high) };
}

/**
 * Return whether the x axis of a chart of learning curves is the time of training; it is the epoch by default.
 * @param {string} chart
 */
export const isTimed = (chart) => settings.get(chart, "x") === "time";

/**
 * Return the setting of a range; null if both ends follow the data.
 * @param {number | undefined} low
 * @param {number | undefined} high
 */
export const rangeSetting = (low, high) =>
  low === undefined && high === undefined ? null : `${low ?? ""}..${high ?? ""}`;

/**
 * Return the weight of the earlier values in the moving average of a chart; 0 draws the values as they are.
 * @param {string} chart
 */
export const smoothingOf = (chart) => Math.min(Math.max(finite(settings.get(chart, "smooth")) ?? 0, 0), MOST_SMOOTH);

/**
 * Return whether a chart leaves outliers out.
 * @param {string} chart
 * @param {Offer["outliers"]} first
 */
export const hidesOutliers = (chart, first) => (settings.get(chart, "outliers") ?? first) === "hidden";

/** @param {string | undefined} text */
function finite(text) {
  const value = Number(text);
  return text?.trim() && Number.isFinite(value) ? value : undefined;
}

/**
 * Return whether a value is drawn on an axis.
 * @param {number} value
 * @param {Scale} scale
 */
export const fitsScale = (value, { log, low = -Infinity, high = Infinity }) =>
  value >= low && value <= high && (!log || value > 0);

/**
 * Return the worst value that is not an outlier; null if none or many are. A good value never is one.
 * @param {number[]} values
 * @param {Direction} direction
 * @returns {Fence | null}
 */
export function fenceOf(values, direction) {
  if (values.length < FEW) return null;
  const [low, high] = fences(values);
  const isInside = (/** @type {number} */ value) => (direction === "max" ? value >= low : value <= high);
  const inside = values.filter(isInside);
  const beyond = values.length - inside.length;
  if (!beyond || beyond > values.length / 10) return null;
  return { at: inside.reduce((a, b) => (direction === "max" ? Math.min(a, b) : Math.max(a, b))), beyond };
}

/**
 * Return Tukey's outer fences: values outside are outliers.
 * @param {number[]} values
 * @returns {[low: number, high: number]}
 */
export function fences(values) {
  const sorted = Float64Array.from(values).sort();
  const [first, third] = [0.25, 0.75].map((part) => sorted[Math.floor(part * (sorted.length - 1))]);
  const far = FAR * (third - first);
  return far && sorted.length >= FEW ? [first - far, third + far] : [-Infinity, Infinity];
}

/**
 * Return the exponential moving average of values in order; the first ones are corrected for the missing earlier ones.
 * @param {(number | null)[]} values
 * @param {number} weight of the earlier values, from 0 to 0.99
 */
export function smoothed(values, weight) {
  let [mean, correction] = [0, 1];
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    correction *= weight;
    return mean / (1 - correction);
  });
}
