// Shared by several charts: the choices of axes, the trials they are drawn from, the trials they need.

/** @import { Column, Control, Direction, Item, Missing, Option, Scene, Table } from "../types.js" */
/** @import { Store } from "../store.js" */
import { evenSample } from "../look.js";
import { grouped, trials } from "../words.js";

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
  const objective = store.objectives.find(({ metric }) => store.keyOf(metric) === key);
  if (objective) return objective.direction;
  return /loss|error|mse|mae|mape|rmse|hinge|divergence|latency|time|seconds|bytes|parameters/i.test(key)
    ? "min"
    : "max";
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

/**
 * Return the trials to draw as dots: some of the best, a third, and an even sample of the others, by number.
 * @param {Scene} scene
 * @param {number[]} found
 * @param {Column} metric
 * @param {Direction} direction
 */
export function dotted({ store }, found, metric, direction) {
  if (found.length <= DOTS) return found;
  const ranked = rankedAmong(store, found, metric, direction);
  const third = Math.floor(DOTS / 3);
  const kept = [...ranked.slice(0, third), ...evenSample(ranked.slice(third), DOTS - third)];
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
