// Hyperparameters that are inactive in some trials. A line may not cross their axes: it would show a value that does not exist.

/** @import { Column } from "../types.js" */

/**
 * Return the columns of hyperparameters in an order in which lines have few gaps: those that are inactive in most trials
 * come first, and the others follow, so that their part of each line reaches the metric behind them.
 * @param {Column[]} columns
 * @param {number[]} trials
 */
export function byGaps(columns, trials) {
  const gaps = new Map(columns.map((column) => [column, trials.filter((index) => isGap(column, index)).length]));
  return [...columns].sort((a, b) => Number(gaps.get(b)) - Number(gaps.get(a)));
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
