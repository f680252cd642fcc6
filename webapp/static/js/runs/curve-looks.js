// How the lines of a chart of learning curves look, and which of their points the pointer is at.

/** @import uPlot from "uplot" */
/** @import { Values } from "../shared/charts/chart.js" */
/** @import { Entry } from "../shared/charts/legend.js" */
import { DASHES, splitColour, splitOf, trialColour } from "../shared/charts/colours.js";

/** A point of a curve; its value is null if it was not finite. @typedef {{ value: number | null, time: number, attempt: number }} Point */
/**
 * A curve, with its points by x.
 * @typedef {{
 *   name: string, job: number, trial: number | null, execution: number | null, points: Map<number, Point>, source?: string,
 * }} Line
 */
/** @typedef {{ stroke: string, dash: number[], width: number }} LineLook */

export const NEAR = 16; // pixels: a line without a point at the pointer shows its nearest one up to there
const MANY = 8; // lines: more are thinner

/**
 * Return whose line it is: that of a trial, or of a job without trials, such as the retraining that follows a search.
 * In a comparison of several jobs, the line names its source.
 * @param {Line} line
 */
const sourceOf = ({ source, job, trial }) => source ?? (trial === null ? `job ${job}` : `trial ${trial}`);

/**
 * Return what distinguishes lines of one colour: the execution, and the metric without its split.
 * @param {Line} line
 */
const kindOf = ({ name, execution }) => `${execution} ${name.replace(/^val_/, "")}`;

/**
 * Return how each line is drawn. Training and validation have their colours on every page; lines of several sources have
 * a colour for each source, and those of training are dashed.
 * @param {Line[]} lines
 * @returns {LineLook[]}
 */
export function looksOf(lines) {
  const sources = [...new Set(lines.map(sourceOf))];
  const splits = new Set(lines.map(({ name }) => splitOf(name)));
  const dashed = [...new Set(lines.map(kindOf))];
  const width = lines.length > MANY ? 1 : 1.75;
  return lines.map((line) => {
    const split = splitOf(line.name);
    if (sources.length > 1) {
      const isDashed = splits.size > 1 && split === "train";
      return { stroke: trialColour(sources.indexOf(sourceOf(line))), dash: DASHES[Number(isDashed)], width };
    }
    return { stroke: splitColour(split), dash: DASHES[dashed.indexOf(kindOf(line)) % DASHES.length], width };
  });
}

/**
 * Return an entry of the legend for each line, or for each source if there are several: its executions look the same.
 * @param {[label: string, line: Line][]} lines
 * @param {LineLook[]} looks
 * @param {number} raw the number of series before the lines, which are the same lines before smoothing
 * @returns {Entry[]}
 */
export function entriesOf(lines, looks, raw) {
  const several = new Set(lines.map(([, line]) => sourceOf(line))).size > 1;
  const names = new Set(lines.map(([, { name }]) => name));
  /** @type {Map<string, Entry>} */
  const entries = new Map();
  lines.forEach(([label, line], at) => {
    const text = several ? `${names.size > 1 ? `${line.name} ` : ""}${sourceOf(line)}` : label;
    const entry = entries.get(text) ?? { label: text, colour: looks[at].stroke, dash: looks[at].dash, series: [] };
    entry.series.push(at + 1);
    if (raw) entry.series.push(at + 1 + raw);
    entries.set(text, entry);
  });
  return [...entries.values()];
}

/**
 * Return the index of the point of a line that is nearest to an x value; null if none is near.
 * @param {uPlot} chart
 * @param {Values} column
 * @param {number} at
 */
export function nearestPlace(chart, column, at) {
  const [xs] = chart.data;
  const from = chart.valToPos(xs[at], "x");
  const isNear = (/** @type {number} */ place) =>
    place >= 0 && place < xs.length && Math.abs(chart.valToPos(xs[place], "x") - from) <= NEAR;
  for (let step = 0; isNear(at - step) || isNear(at + step); step++) {
    for (const place of [at - step, at + step]) if (isNear(place) && column[place] !== null) return place;
  }
  return null;
}
