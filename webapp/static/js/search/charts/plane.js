// Shared by the charts of a metric over two hyperparameters: their controls, and the trials that they are drawn from.

/** @import { Chart, Column, Scene } from "../types.js" */
import { numbersOf } from "../store.js";
import { axisOffer, control, directionOf, drawn, scaled, scoredCount, withinAxes } from "./shared.js";

/** @typedef {(value: number) => number} Scale */
/** @typedef {{ low: number, high: number, to: Scale, from: Scale }} Extent */

/** @type {Scale} */
const same = (value) => value;

/**
 * Return the range of a column in its own scale, with the functions to that scale and back.
 * @param {Column} column
 * @param {number[]} found
 * @returns {Extent}
 */
export function extent(column, found) {
  const { log, categories, low: from, high: until } = column;
  if (categories) return { low: -0.5, high: categories.length - 0.5, to: same, from: same };
  const values = numbersOf(column);
  let [low, high] = [Infinity, -Infinity];
  const to = log ? Math.log10 : same;
  for (const index of found) {
    const at = to(values[index]);
    if (at < low) low = at;
    if (at > high) high = at;
  }
  if (from !== undefined) low = to(from);
  if (until !== undefined) high = to(until);
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return { low, high, to, from: log ? (value) => 10 ** value : same };
}

/** @type {Required<Pick<Chart, "controls" | "offer">>} */
export const PLANE = {
  controls: [control.x, control.y, control.metric],
  offer: (scene) => ({
    scales: [
      ...axisOffer(scene, "x", "x axis"),
      ...axisOffer(scene, "y", "y axis"),
      { axis: "z", label: "Colours", range: true },
    ],
    outliers: "hidden",
  }),
};

/**
 * Return the chosen columns, and the trials that their axes show.
 * @param {Scene} scene
 */
export function onPlane(scene) {
  const { store, axes, scales } = scene;
  const [x, y] = [scaled(store.column(axes.x), scales.x), scaled(store.column(axes.y), scales.y)];
  const metric = store.column(axes.metric);
  const { found: fitting, all } = drawn(scene, [x, y, metric]);
  const { kept: found, left } = withinAxes(scene, fitting, [{ column: x }, { column: y }]);
  return { x, y, metric, direction: directionOf(scene, metric.key), found, note: scoredCount(fitting, all) + left };
}
