// The surface of the contour chart: a metric interpolated between trials. Nothing is interpolated between categories,
// which have nothing between them.

/** @import { Column } from "../types.js" */
/** @import { Extent } from "./plane.js" */
import { numbersOf } from "../store.js";

const FINE = 30; // points a side at which a surface is computed between numbers
const SIDE = 16; // parts a side whose trials are pooled

/** One axis of a surface: its points, and whether each is a category. @typedef {{ points: number, steps: boolean }} Side */
/** Values from the lower left, row by row; NaN where no trial has the category. @typedef {{ values: Float64Array, across: Side, up: Side }} Surface */

/**
 * @param {Column} column
 * @returns {Side}
 */
const sideOf = ({ categories }) =>
  categories ? { points: categories.length, steps: true } : { points: FINE, steps: false };

/**
 * Interpolate by inverse squared distance from knots: the means of the cells of a grid that have trials.
 * @param {number[]} found
 * @param {Column} x
 * @param {Column} y
 * @param {Column} metric
 * @param {Extent} across
 * @param {Extent} up
 * @returns {Surface}
 */
export function interpolate(found, x, y, metric, across, up) {
  const [width, height] = [sideOf(x), sideOf(y)];
  const knots = knotsOf(found, x, y, metric, across, up);
  const values = new Float64Array(width.points * height.points);
  for (let row = 0; row < height.points; row++) {
    for (let column = 0; column < width.points; column++) {
      let [total, weights] = [0, 0];
      for (const knot of knots) {
        if (width.steps && Math.floor(knot.u * width.points) !== column) continue;
        if (height.steps && Math.floor(knot.v * height.points) !== row) continue;
        const du = (column + 0.5) / width.points - knot.u;
        const dv = (row + 0.5) / height.points - knot.v;
        const weight = knot.weight / (du * du + dv * dv + 4e-3);
        total += weight * knot.mean;
        weights += weight;
      }
      values[row * width.points + column] = weights ? total / weights : Number.NaN;
    }
  }
  return { values, across: width, up: height };
}

/**
 * Return the means of cells, with their positions between 0 and 1; each category is a cell.
 * @param {number[]} found
 * @param {Column} x
 * @param {Column} y
 * @param {Column} metric
 * @param {Extent} across
 * @param {Extent} up
 */
function knotsOf(found, x, y, metric, across, up) {
  const [wide, high] = [x, y].map(({ categories }) => categories?.length ?? SIDE);
  const [xs, ys, values] = [x, y, metric].map(numbersOf);
  /** @type {Map<number, number[]>} */
  const sums = new Map();
  for (const index of found) {
    const u = (across.to(xs[index]) - across.low) / (across.high - across.low);
    const v = (up.to(ys[index]) - up.low) / (up.high - up.low);
    const key = Math.min(high - 1, Math.floor(v * high)) * wide + Math.min(wide - 1, Math.floor(u * wide));
    const sum = sums.get(key) ?? [0, 0, 0, 0];
    sums.set(key, sum);
    sum[0] += u;
    sum[1] += v;
    sum[2] += values[index];
    sum[3] += 1;
  }
  return [...sums.values()].map(([u, v, total, count]) => ({
    u: u / count,
    v: v / count,
    mean: total / count,
    weight: Math.sqrt(count),
  }));
}

/**
 * Return the value of a surface at a place between 0 and 1 on both axes; NaN where it has none.
 * @param {Surface} surface
 * @param {number} u
 * @param {number} v
 */
export function valueAt({ values, across, up }, u, v) {
  const [column, du] = place(across, u);
  const [row, dv] = place(up, v);
  const mix = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ part) =>
    part ? a * (1 - part) + b * part : a;
  const along = (/** @type {number} */ line) => {
    const at = line * across.points + column;
    return mix(values[at], values[at + 1], du);
  };
  return mix(along(row), dv ? along(row + 1) : 0, dv);
}

/**
 * Return the point before a place on an axis, and the part of the way to the next one; 0 within a category.
 * @param {Side} side
 * @param {number} at
 * @returns {[point: number, part: number]}
 */
function place({ points, steps }, at) {
  if (steps) return [Math.min(Math.floor(at * points), points - 1), 0];
  const exact = Math.min(Math.max(at * points - 0.5, 0), points - 1);
  const point = Math.min(Math.floor(exact), points - 2);
  return [point, exact - point];
}
