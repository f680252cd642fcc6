// The lines of each chart of an endpoint, and the texts of their values.

/** @import { Figures, Point, Traffic } from "./store.js" */
import { DASHES, themeColour, trialColour } from "../../shared/charts/colours.js";
import { grouped, number } from "../../shared/words.js";
import { seconds } from "./store.js";

/** @typedef {{ label: string, colour: string, dash?: number[], values: (number | null)[] }} TrafficLine */
/** @typedef {{ id: string, title: string, unit: string, lines: (data: Traffic) => TrafficLine[] }} TrafficKind */

const NO_VERSION = "0";

/** @type {Record<string, string>} */
const STATUSES = {
  400: "invalid input",
  404: "not found",
  413: "too large",
  429: "queue full",
  499: "client left",
  500: "model failed",
  503: "not ready",
  504: "too late",
};

/** @param {string} status */
export const statusWords = (status) => (STATUSES[status] ? `${status} ${STATUSES[status]}` : status);

/** @param {string} version */
export const versionName = (version) => (version === NO_VERSION ? "no version" : `v${version}`);

/**
 * Return the colour of a version, the same in every chart of the page. No other line of the page has one of these.
 * @param {number} version
 */
export const versionColour = (version) => trialColour(version - 1);

/** The colour of lines that are no version's: percentiles, means and counts of all requests. */
const measureColour = () => themeColour("--tblr-body-color");
const [, DASHED, DOTTED] = DASHES;

/**
 * Return the values of all points; null before the first request that was counted.
 * @param {Traffic} data
 * @param {(point: Point) => number | null} value
 */
function valuesOf({ points, since, step_seconds }, value) {
  const first = since === null ? Number.POSITIVE_INFINITY : seconds(since);
  return points.map((point) => (seconds(point.at) + step_seconds <= first ? null : value(point)));
}

/**
 * Return the keys that any point has in one of its tables.
 * @param {Traffic} data
 * @param {"versions" | "errors"} table
 */
const keysOf = ({ total }, table) => Object.keys(total[table]).sort((a, b) => Number(a) - Number(b));

/** @param {Traffic} data */
function requestLines(data) {
  return keysOf(data, "versions").map((version) => ({
    label: versionName(version),
    colour: version === NO_VERSION ? themeColour("--ty-neutral") : versionColour(Number(version)),
    values: valuesOf(data, (point) => (point.versions[version] ?? 0) / (point.seconds || 1)),
  }));
}

/** @param {Traffic} data */
const latencyLines = (data) => [
  { label: "p50", colour: measureColour(), values: valuesOf(data, ({ p50_ms }) => p50_ms) },
  { label: "p95", colour: measureColour(), dash: DASHED, values: valuesOf(data, ({ p95_ms }) => p95_ms) },
  { label: "p99", colour: measureColour(), dash: DOTTED, values: valuesOf(data, ({ p99_ms }) => p99_ms) },
];

/** @param {Traffic} data */
function errorLines(data) {
  const statuses = keysOf(data, "errors");
  if (!statuses.length)
    return [{ label: "failed", colour: themeColour("--ty-failed"), values: valuesOf(data, () => 0) }];
  const classOf = (/** @type {string} */ status) => (status >= "500" ? "--ty-failed" : "--ty-retrying");
  return statuses.map((status) => {
    const colour = classOf(status);
    const place = statuses.filter((other) => classOf(other) === colour).indexOf(status);
    return {
      label: statusWords(status),
      colour: themeColour(colour),
      dash: DASHES[place % DASHES.length],
      values: valuesOf(data, (point) => (point.errors[status] ?? 0) / (point.seconds || 1)),
    };
  });
}

/** @param {Traffic} data */
const batchLines = (data) => [
  { label: "mean", colour: measureColour(), values: valuesOf(data, ({ batch_mean }) => batch_mean) },
  { label: "p95", colour: measureColour(), dash: DASHED, values: valuesOf(data, ({ batch_p95 }) => batch_p95) },
];

/** @param {Traffic} data */
const rowLines = (data) => [
  { label: "rows", colour: measureColour(), values: valuesOf(data, (point) => point.rows / (point.seconds || 1)) },
];

/** @param {Traffic} data */
const waitingLines = (data) => [
  { label: "most rows waiting", colour: measureColour(), values: valuesOf(data, ({ waiting }) => waiting) },
];

/** @type {TrafficKind[]} */
export const KINDS = [
  { id: "requests", title: "Requests", unit: "per second", lines: requestLines },
  { id: "latency", title: "Latency", unit: "ms", lines: latencyLines },
  { id: "errors", title: "Errors", unit: "per second", lines: errorLines },
  { id: "batches", title: "Batch size", unit: "rows in a batch", lines: batchLines },
  { id: "rows", title: "Rows", unit: "per second", lines: rowLines },
  { id: "waiting", title: "Queue", unit: "rows", lines: waitingLines },
];

/**
 * Return a rate, a time or a mean with three significant digits.
 * @param {number | null} value
 */
export function shown(value) {
  if (value === null) return number(value);
  return Math.abs(value) < 1000 ? String(Number(value.toPrecision(3))) : grouped(Math.round(value));
}

/**
 * Return a share in percent; small ones keep two digits.
 * @param {number} share
 */
export const percent = (share) => `${Number((share * 100).toPrecision(share && share < 0.1 ? 2 : 3))} %`;

/**
 * Return the figures of the whole time: label, value and hint.
 * @param {Figures} total
 * @returns {[label: string, value: string, hint: string][]}
 */
export function summaryOf(total) {
  const { requests, failed, errors } = total;
  const most = Object.entries(errors).sort(([, a], [, b]) => b - a)[0];
  const ms = (/** @type {number | null} */ value) => (value === null ? "–" : `${shown(value)} ms`);
  return [
    ["Requests", grouped(requests), `${shown(total.requests_per_second)} per second`],
    ["p50", ms(total.p50_ms), "half take longer"],
    ["p95", ms(total.p95_ms), "1 in 20 takes longer"],
    ["p99", ms(total.p99_ms), "1 in 100 takes longer"],
    [
      "Errors",
      requests ? percent(failed / requests) : "–",
      most ? `${statusWords(most[0])}: ${grouped(most[1])}` : "none",
    ],
    ["Batch", total.batch_mean === null ? "–" : shown(total.batch_mean), "rows on average"],
  ];
}
