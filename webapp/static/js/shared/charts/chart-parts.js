// Parts of the options of a live chart.

/** @import uPlot from "uplot" */
/** @import { Series } from "uplot" */
/** @import { Scale } from "../charts/axes.js" */
import { grouped } from "../words.js";

export const LEAST_DRAG = 4; // pixels: less is a click
/** The steps between marks of whole epochs and trials. */
export const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];

/** Points are drawn only where a series has too few of them for a line. @type {Series.Points} */
export const LONE = {
  size: 6,
  show: (chart, at) => {
    let count = 0;
    for (const value of chart.data[at]) if (value !== null && value !== undefined && ++count > 2) return false;
    return true;
  },
};

/**
 * Return the ends of a drag across a chart on its x axis; null if it was a click.
 * @param {uPlot} chart
 * @returns {[number, number] | null}
 */
export function draggedRange(chart) {
  const { left, width } = chart.select;
  return width < LEAST_DRAG ? null : [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
}

/**
 * @param {number | null} low
 * @param {number | null} high
 * @param {Scale} scale
 * @returns {[number | null, number | null]}
 */
export function horizontal(low, high, scale) {
  const [from, to] = [scale.low ?? low, scale.high ?? high];
  if (from === null || to === null || from < to) return [from, to];
  return scale.log ? [from / 2, from * 2] : [from - 1, from + 1];
}

/**
 * Return a mark of an axis as text. uPlot stops at three decimals, which are too few for a learning rate.
 * @param {number | null} mark
 */
export function formatMark(mark) {
  if (mark === null) return "";
  return Math.abs(mark) >= 1000 ? grouped(mark) : String(Number(mark.toPrecision(4)));
}
