// Shared by several charts: the choices of axes, the trials they are drawn from, the trials they need.

import { fenceOf, fitsScale } from "../../shared/charts/axes.js";
import { grouped, trials } from "../../shared/words.js";
import { evenSample } from "../look.js";
/** @import { Direction, Item, Missing, Option, Table } from "../../shared/charts/types.js" */
/** @import { Column, Control, Scene } from "../types.js" */
/** @import { AxisOffer, Scale } from "../../shared/charts/axes.js" */
/** @import { Store } from "../store.js" */
import { SMALLER_IS_BETTER } from "../store.js";

/**
 * @param {Column[]} columns
 * @returns {Option[]}
 */
const as = (columns) => columns.map(({ key, label }) => ({ value: key, label }));

/** @param {Scene} scene */
export const hyperparameters = ({ store }) => as(store.of("hyperparameter"));
/** @param {Scene} scene */
export const metrics = ({ store }) => as(store.of("metric"));

/** @type {Record<"x" | "y" | "metric", Control>} */
export const control = {
  x: { name: "x", label: "Across", options: hyperparameters },
  y: { name: "y", label: "Up", options: hyperparameters, first: ({ store }) => store.of("hyperparameter")[1]?.key },
  metric: { name: "metric", label: "Metric", options: metrics },
};

/**
 * Return the metrics by the names of their curves: training and validation each have one.
 * @param {{ store: Store }} scene
 */
export function curveNames({ store }) {
  const known = new Set([store.objective.metric, ...Object.keys(store.metrics)]);
  for (const name of [...known]) if (name.startsWith("val_")) known.add(name.slice(4));
  return [...known].sort().map((name) => ({ value: name, label: name }));
}

/**
 * Return which values of a metric are better: as the objective states, else small errors and losses are better.
 * @param {{ store: Store }} scene
 * @param {string} key
 * @returns {Direction}
 */
export function directionOf({ store }, key) {
  return store.directionOf(key) ?? (SMALLER_IS_BETTER.test(key) ? "min" : "max");
}

/**
 * Return the trials that fit the filters and have a finite number in each of these columns, and all with a score.
 * @param {Scene} scene
 * @param {Column[]} columns
 */
export function drawn({ store, view }, columns) {
  const { fits } = view;
  const has = (/** @type {number} */ index) => columns.every(({ values }) => Number.isFinite(values[index]));
  const all = store.scored();
  const found = all.filter((index) => fits(index) && has(index));
  return { found, all };
}

/**
 * Return what people can change on the axis of a column: categories have neither a logarithm nor a range.
 * @param {Scene} scene
 * @param {"x" | "y"} axis
 * @param {string} label
 * @returns {AxisOffer[]}
 */
export const axisOffer = ({ store, axes }, axis, label) =>
  store.columns.get(axes[axis])?.numeric ? [{ axis, label, log: true, range: true }] : [];

/**
 * Return a column as it is drawn on an axis.
 * @param {Column} column
 * @param {Scale} scale
 * @returns {Column}
 */
export const scaled = (column, { log, low, high }) =>
  column.numeric ? { ...column, log: log ?? column.log, low, high } : column;

/**
 * Leave out trials that the axes do not show: those outside a range, at or below zero on a logarithmic axis, and
 * outliers of a metric.
 * @param {Scene} scene
 * @param {number[]} found
 * @param {{ column: Column, direction?: Direction }[]} axes with a direction where outliers may be left out
 * @returns {{ kept: number[], left: string }} the other trials, and why those were left out
 */
export function withinAxes({ hidesOutliers }, found, axes) {
  const numeric = axes.filter(({ column }) => column.numeric);
  const fits = (/** @type {number} */ index) =>
    numeric.every(({ column }) => fitsScale(Number(column.values[index]), column));
  const inside = numeric.length ? found.filter(fits) : found;
  let kept = inside;
  for (const { column, direction } of numeric) {
    if (!direction || !hidesOutliers) continue;
    const fence = fenceOf(
      kept.map((index) => Number(column.values[index])),
      direction,
    );
    if (!fence) continue;
    const isInside = (/** @type {number} */ index) =>
      direction === "max" ? Number(column.values[index]) >= fence.at : Number(column.values[index]) <= fence.at;
    kept = kept.filter(isInside);
  }
  const [outside, far] = [found.length - inside.length, inside.length - kept.length];
  const parts = [
    outside ? `${grouped(outside)} outside the axes` : "",
    far ? `${grouped(far)} outlier${far > 1 ? "s" : ""}` : "",
  ].filter(Boolean);
  return { kept, left: parts.length ? `; ${parts.join(" and ")} not drawn` : "" };
}

/**
 * Return some trials, best first, in the known order of all of them: nothing is sorted here.
 * @param {Store} store
 * @param {number[]} found
 * @param {Column} metric
 * @param {Direction} direction
 */
export function rankedAmong(store, found, metric, direction) {
  const among = new Uint8Array(store.size);
  for (const index of found) among[index] = 1;
  return store.ranked(metric, direction).filter((index) => among[index] === 1);
}

const DOTS = 400; // each is a shape, which costs time, and more of them cover each other
const DOTS_SMALL = 150; // of a chart in a grid

/**
 * Return the trials to draw as dots: some of the best, a third, and an even sample of the others, by number.
 * @param {Scene} scene
 * @param {number[]} found
 * @param {Column} metric
 * @param {Direction} direction
 */
export function dotted({ store, compact }, found, metric, direction) {
  const most = compact ? DOTS_SMALL : DOTS;
  if (found.length <= most) return found;
  const ranked = rankedAmong(store, found, metric, direction);
  const third = Math.floor(most / 3);
  const kept = [...ranked.slice(0, third), ...evenSample(ranked.slice(third), most - third)];
  return kept.sort((a, b) => store.number[a] - store.number[b]);
}

/**
 * Split a list in two: entries for which the test fails, and those for which it holds. A chart draws each as a series,
 * because a single dot with another look would slow down all dots of its series.
 * @template T
 * @param {T[]} list
 * @param {(entry: T) => boolean} test
 * @returns {[T[], T[]]}
 */
export function partition(list, test) {
  /** @type {[T[], T[]]} */
  const lists = [[], []];
  for (const entry of list) lists[Number(test(entry))].push(entry);
  return lists;
}

/**
 * Return the items of a chart that draws each of `lists` as a series, in the order of `list`.
 * @template T
 * @param {T[]} list
 * @param {T[][]} lists
 * @param {(entry: T) => Pick<Item, "text" | "trial">} describe
 * @returns {Item[]}
 */
export function seriesItems(list, lists, describe) {
  /** @type {Map<T, Pick<Item, "series" | "data">>} */
  const places = new Map();
  lists.forEach((part, series) => part.forEach((entry, data) => places.set(entry, { series, data })));
  return list.map((entry) => ({ series: -1, data: -1, ...places.get(entry), ...describe(entry) }));
}

/**
 * Return the number of trials of a chart as text, and how many of them are drawn if not all are.
 * @param {unknown[]} dots
 * @param {unknown[]} found
 * @param {unknown[]} all
 */
export const drawnCount = (dots, found, all) =>
  scoredCount(found, all) + (dots.length < found.length ? `; ${grouped(dots.length)} drawn, the best among them` : "");

/**
 * Return the number of trials of a chart as text.
 * @param {unknown[]} found
 * @param {unknown[]} all
 */
export const scoredCount = (found, all) =>
  found.length === all.length
    ? `${trials(found.length)} with a score`
    : `${grouped(found.length)} of ${trials(all.length)} with a score`;

/**
 * @param {number} count
 * @returns {(scene: Scene) => Missing | null}
 */
export function needsTrials(count) {
  return ({ store, view }) => {
    const { fits } = view;
    const now = store.scored().filter(fits).length;
    if (now >= count) return null;
    const filtered = view.where.size ? " Filters are on: remove one to see more." : "";
    return {
      title: `Needs ${count} completed trial${count > 1 ? "s" : ""}`,
      hint: `There ${now === 1 ? "is" : "are"} ${now || "none"} so far.${filtered}`,
    };
  };
}

/**
 * @param {number} count
 * @param {number} trialsToo
 * @returns {(scene: Scene) => Missing | null}
 */
export function needsHyperparameters(count, trialsToo = 2) {
  return (scene) => {
    const have = scene.store.of("hyperparameter").length;
    if (have < count)
      return {
        title: `Needs ${count} hyperparameters`,
        hint: `This search varies ${have || "none"}; the slice chart shows the score by one hyperparameter.`,
      };
    return needsTrials(trialsToo)(scene);
  };
}

/**
 * Return the table behind a chart of trials, with a row for each trial.
 * @param {Scene} scene
 * @param {number[]} found
 * @param {Column[]} columns
 * @returns {Table}
 */
export function tableOf({ store }, found, columns) {
  return {
    head: [{ label: "trial", num: true }, ...columns.map(({ label, numeric }) => ({ label, num: numeric }))],
    rows: found.map((index) => [store.number[index], ...columns.map((column) => store.text(column, index))]),
  };
}
