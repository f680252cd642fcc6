// Hyperparameters that are inactive in some trials. A line may not cross their axes: it would show a value that does not exist.

/** @import { Column } from "../types.js" */

/**
 * Return the columns of hyperparameters and of the metric in an order in which lines have few gaps. Hyperparameters that
 * are always active are in the middle and the metric follows them; of the others, those that are never active together
 * are at different ends, so that each trial has one line where there are two kinds of trials.
 * @param {Column[]} hyperparameters
 * @param {Column} metric
 * @param {number[]} trials
 */
export function arranged(hyperparameters, metric, trials) {
  const active = new Map(
    hyperparameters.map((column) => [column, new Set(trials.filter((index) => !isGap(column, index)))]),
  );
  const activeIn = (/** @type {Column} */ column) => active.get(column) ?? new Set();
  const sometimes = hyperparameters.filter((column) => activeIn(column).size < trials.length);
  const always = hyperparameters.filter((column) => !sometimes.includes(column));
  /** @type {Column[]} */
  const left = [];
  /** @type {Column[]} */
  const right = [];
  for (const column of sometimes) {
    const isApart = left.some((other) => ![...activeIn(column)].some((index) => activeIn(other).has(index)));
    (isApart ? right : left).push(column);
  }
  left.sort((a, b) => activeIn(a).size - activeIn(b).size);
  right.sort((a, b) => activeIn(b).size - activeIn(a).size);
  return [...left, ...always, metric, ...right];
}

/**
 * Return the parts of a trial's line between its gaps, as the indices of their first and last columns.
 * @param {Column[]} columns
 * @param {number} index
 * @returns {[first: number, last: number][]}
 */
export function partsOf(columns, index) {
  /** @type {[number, number][]} */
  const parts = [];
  let first = -1;
  columns.forEach((column, at) => {
    if (isGap(column, index)) first = -1;
    else if (first >= 0) parts[parts.length - 1][1] = at;
    else {
      first = at;
      parts.push([at, at]);
    }
  });
  return parts;
}

/**
 * @param {Column} column
 * @param {number} index
 */
const isGap = ({ values }, index) => values[index] === null || values[index] === undefined;
