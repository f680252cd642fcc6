// The points of learning curves: as the server sends them, and in the columns that a chart draws.

/** @import { Values } from "../shared/charts/chart.js" */
/** @import { Point } from "./curve-looks.js" */

/** A point at its place on the x axis, which is its x or the time of training. @typedef {{ x: number, at: number, value: number | null }} Spot */

/**
 * A series of the answer about metrics.
 * @typedef {{
 *   name: string, job: number, trial: number | null, execution: number | null, x: string,
 *   points: [x: number, value: number | null, low: number | null, high: number | null, time: number][],
 *   total_points: number, attempts: { attempt: number, x: number, time: number }[],
 * }} MetricSeries
 */

/**
 * Return the points of a series by x.
 * @param {MetricSeries} series
 * @returns {Generator<[x: number, point: Point]>}
 */
export function* measuredPoints({ points, attempts }) {
  let at = 0;
  for (const [x, value, , , time] of points) {
    while (at + 1 < attempts.length && attempts[at + 1].x <= x) at += 1;
    yield [x, { value, time, attempt: attempts[at].attempt }];
  }
}

/**
 * Return the columns of a chart: the places on the x axis, and the values of each line at them.
 * @param {Spot[][]} lines
 * @param {(spot: Spot) => boolean} shows whether the axes show a point
 * @returns {Values[]}
 */
export function columnsOf(lines, shows) {
  const shown = lines.map((spots) => spots.filter(shows));
  const places = [...new Set(shown.flatMap((spots) => spots.map(({ at }) => at)))].sort((a, b) => a - b);
  const index = new Map(places.map((at, place) => [at, place]));
  const columns = shown.map((spots) => {
    /** @type {Values} */
    const column = new Array(places.length).fill(null);
    for (const { at, value } of spots) column[Number(index.get(at))] = value;
    return column;
  });
  return [places, ...columns];
}

/**
 * Return an even sample of the points of a line, with its last one.
 * @param {Spot[]} spots
 * @param {number} most
 */
export function sampleOf(spots, most) {
  const step = Math.ceil(spots.length / most);
  return spots.filter((_, at) => at % step === 0 || at === spots.length - 1);
}
