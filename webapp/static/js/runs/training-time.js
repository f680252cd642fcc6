// The time of training at the points of learning curves, for an x axis that several trainings can be compared on.
// Each training starts at 0 with its first point. Only the time within its attempts counts: a pause, a wait for slots
// and the start of a process are no training. Work that was lost with its attempt counts once, when it is repeated.

/** @import { Line, Point } from "./curve-looks.js" */
import { duration, setting } from "../shared/words.js";

/** When the points of an attempt were measured, and their x. @typedef {{ begin: number, end: number, first: number, last: number }} Span */
/** @typedef {[x: number, point: Point][]} Points */
/** The seconds of training by x, in ascending order. @typedef {Map<number, number>} Times */

const LEAST = 1e-6; // seconds between two points of a line, which must not be at the same place

/** Steps between marks of a time axis, in seconds. */
export const TIME_STEPS = [
  ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800],
  ...[3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000],
];

/**
 * Return a time of training in words, with more digits than other durations: epochs may be short.
 * @param {number} seconds
 */
export const timeWords = (seconds) => (seconds < 60 ? `${setting(seconds, 3)} s` : duration(seconds));

/**
 * Return the time of training at each point of each line. Points of lost work that no attempt has reached again are
 * left out.
 * @param {Line[]} lines
 * @returns {Map<Line, Times>}
 */
export function trainingTimes(lines) {
  /** @type {Map<Line, Times>} */
  const found = new Map();
  // Lines of one training, such as those of its losses, share their start.
  const trainings = Map.groupBy(lines, ({ job, trial, execution }) => `${job} ${trial} ${execution}`);
  for (const training of trainings.values()) {
    const kept = training.map(withoutLostWork);
    const spans = spansOf(kept.flat());
    const starts = startsOf(spans);
    training.forEach((line, at) => {
      found.set(line, timesOf(kept[at], spans, starts));
    });
  }
  return found;
}

/**
 * Return the points of a line in ascending order of x, without those of an attempt that a later one has replaced.
 * @param {Line} line
 * @returns {Points}
 */
function withoutLostWork({ points }) {
  let newest = 0;
  return [...points]
    .sort(([a], [b]) => a - b)
    .filter(([, { attempt }]) => {
      newest = Math.max(newest, attempt);
      return attempt === newest;
    });
}

/**
 * Return the attempts of a training in order, each with when it measured which points.
 * @param {Points} points
 * @returns {Map<number, Span>}
 */
function spansOf(points) {
  /** @type {Map<number, Span>} */
  const spans = new Map();
  for (const [x, { time, attempt }] of points) {
    const { begin, end, first, last } = spans.get(attempt) ?? { begin: time, end: time, first: x, last: x };
    spans.set(attempt, {
      begin: Math.min(begin, time),
      end: Math.max(end, time),
      first: Math.min(first, x),
      last: Math.max(last, x),
    });
  }
  return new Map([...spans].sort(([a], [b]) => a - b));
}

/**
 * Return the time of training at the first point of each attempt. The epochs from the last point of the attempt before
 * up to it were trained too, but it is unknown for how long, so they count as long as the others on average.
 * @param {Map<number, Span>} spans
 * @returns {Map<number, number>}
 */
function startsOf(spans) {
  const all = [...spans.values()];
  const trained = all.reduce((sum, { begin, end }) => sum + end - begin, 0);
  const length = all.reduce((sum, { first, last }) => sum + last - first, 0);
  const pace = length ? trained / length : 0;
  const starts = new Map();
  let seconds = 0;
  /** @type {Span | null} */
  let before = null;
  for (const [attempt, span] of spans) {
    if (before) seconds += before.end - before.begin + pace * Math.max(span.first - before.last, 0);
    starts.set(attempt, seconds);
    before = span;
  }
  return starts;
}

/**
 * @param {Points} points
 * @param {Map<number, Span>} spans
 * @param {Map<number, number>} starts
 * @returns {Times}
 */
function timesOf(points, spans, starts) {
  const times = new Map();
  let before = -LEAST;
  for (const [x, { time, attempt }] of points) {
    const { begin } = /** @type {Span} */ (spans.get(attempt));
    before = Math.max(Number(starts.get(attempt)) + time - begin, before + LEAST);
    times.set(x, before);
  }
  return times;
}
