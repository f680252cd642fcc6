// What several charts share: the choices of axes, the trials they are drawn from, what they need.
import { thin } from "../look.js";
import { grouped, trials } from "../words.js";

const as = (columns) => columns.map(({ key, label }) => ({ value: key, label }));

export const hyperparameters = ({ store }) => as(store.of("hyperparameter"));
export const metrics = ({ store }) => as(store.of("metric"));

export const control = {
  x: { name: "x", label: "Across", options: hyperparameters },
  y: { name: "y", label: "Up", options: hyperparameters, first: ({ store }) => store.of("hyperparameter")[1]?.key },
  metric: { name: "metric", label: "Metric", options: metrics },
};

/** The metrics as their curves are called: training and validation each have one. */
export function curveNames({ store }) {
  const known = new Set([store.objective.metric, ...Object.keys(store.metrics)]);
  for (const name of [...known]) if (name.startsWith("val_")) known.add(name.slice(4));
  return [...known].sort().map((name) => ({ value: name, label: name }));
}

/** A metric's better direction: the objectives' are known, of the others errors and losses are small. */
export function directionOf({ store }, key) {
  const told = store.objectives.find(({ metric }) => store.keyOf(metric) === key);
  if (told) return told.direction;
  return /loss|error|mse|mae|mape|rmse|hinge|divergence|latency|time|seconds|bytes|parameters/i.test(key)
    ? "min"
    : "max";
}

/** The trials that fit the filters and have a finite number in each of these columns. */
export function drawn({ store, view }, columns) {
  const { fits } = view;
  const has = (index) =>
    columns.every(
      ({ values }) => values[index] !== null && values[index] !== undefined && Number.isFinite(values[index]),
    );
  const all = store.scored();
  const found = all.filter((index) => fits(index) && has(index));
  return { found, all };
}

/** Some trials, best first: the order of all of them is kept, so that nothing is sorted here. */
export function rankedAmong(store, found, metric, direction) {
  const among = new Uint8Array(store.size);
  for (const index of found) among[index] = 1;
  return store.ranked(metric, direction).filter((index) => among[index] === 1);
}

const DOTS = 400; // a shape each: the dearest part of a chart, and more of them cover each other

/** The dots to draw of some trials: the best third and an even sample of the others, in the order given. */
export function dotted({ store }, found, metric, direction) {
  if (found.length <= DOTS) return found;
  const ranked = rankedAmong(store, found, metric, direction);
  const third = Math.floor(DOTS / 3);
  const kept = [...ranked.slice(0, third), ...thin(ranked.slice(third), DOTS - third)];
  return kept.sort((a, b) => store.number[a] - store.number[b]);
}

/** Split a list in two: what is not so, and what is. A look of its own for one dot would cost all dots of a series. */
export function apart(list, isSo) {
  const lists = [[], []];
  for (const entry of list) lists[Number(isSo(entry))].push(entry);
  return lists;
}

/** What can be walked through of a chart that draws each of `lists` as a series, in the order of `list`. */
export function walked(list, lists, tell) {
  const places = new Map(lists.flatMap((part, series) => part.map((entry, data) => [entry, { series, data }])));
  return list.map((entry) => ({ ...places.get(entry), ...tell(entry) }));
}

/** How many trials stand behind a chart, and how many of them are drawn where that is fewer. */
export const counts = (dots, found, all) =>
  behind(found, all) + (dots.length < found.length ? `; ${grouped(dots.length)} drawn, the best among them` : "");

/** How many trials stand behind a chart, in words. */
export const behind = (found, all) =>
  found.length === all.length
    ? `${trials(found.length)} with a score`
    : `${grouped(found.length)} of ${trials(all.length)} with a score`;

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

export function needsHyperparameters(count, trialsToo = 2) {
  return (scene) => {
    const have = scene.store.of("hyperparameter").length;
    if (have < count)
      return {
        title: `Needs ${count} hyperparameters`,
        hint: `This search varies ${have || "none"}; a slice shows how the score follows one.`,
      };
    return needsTrials(trialsToo)(scene);
  };
}

/** The table behind a chart of trials: a row a trial, best first where a metric is drawn. */
export function tableOf({ store }, found, columns) {
  return {
    head: [{ label: "trial", num: true }, ...columns.map(({ label, numeric }) => ({ label, num: numeric }))],
    rows: found.map((index) => [store.number[index], ...columns.map((column) => store.text(column, index))]),
  };
}
