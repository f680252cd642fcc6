// The trials of a search as columns, kept up to date: the page requests only changes, never single rows.

/** @import { LiveEvent } from "../shared/connection/live.js" */
/** @import { TipText } from "../shared/charts/tip.js" */
/** @import { Direction, Range } from "../shared/charts/types.js" */
/** @import { Column, ColumnsAnswer, Objective, Parameter, Reached, Values } from "./types.js" */
import { address } from "../shared/addresses.js";
import { SETTINGS_OF_TRAINING } from "../shared/charts/colours.js";
import { cursorOfPage, follow } from "../shared/connection/live.js";
import { answers } from "../shared/connection/server.js";
import { number, setting } from "../shared/words.js";

const PAUSE = 1000; // ms: one request for a burst of events
const RELOAD_EVENTS = new Set(["trial", "execution", "attempt", "state"]);
const PLAIN = /** @type {const} */ ([
  "state",
  "score",
  "std",
  "by_hand",
  "restarts",
  "finished",
  "seconds",
  "executions",
  "epochs",
]);

/** @type {Map<number, Store>} */
const stores = new Map();

/**
 * Return the one store of a job on this page.
 * @param {number} job
 */
export function storeOf(job) {
  const store = stores.get(job) ?? new Store(job);
  stores.set(job, store);
  return store;
}

/** Parts of the names of metrics whose small values are better. */
export const SMALLER_IS_BETTER = /loss|error|mse|mae|mape|rmse|hinge|divergence|latency|time|seconds|bytes|parameters/i;

export class Store extends EventTarget {
  ready = false;
  failed = false;
  version = 0;
  /** The cursor of the last response; empty before the first. */
  cursor = "";
  timer = 0;
  progressTimer = 0;
  /** @type {Map<number, number>} number → index */
  place = new Map();
  /** @type {number[]} */
  number = [];
  /** @type {number[]} */
  state = [];
  /** @type {Values} */
  score = [];
  /** @type {Values} */
  std = [];
  /** @type {boolean[]} */
  by_hand = [];
  /** @type {number[]} */
  restarts = [];
  /** @type {Values} */
  finished = [];
  /** @type {Values} */
  seconds = [];
  /** @type {number[]} */
  executions = [];
  /** @type {number[]} */
  epochs = [];
  /** @type {Record<string, Values>} */
  values = Object.create(null); // people choose the names: none may be a property of a prototype
  /** @type {Record<string, Values>} */
  metrics = Object.create(null);
  /** @type {Record<number, string>} */
  waiting = {};
  /** @type {Set<number>} numbers of the trials that no other beats in all objectives */
  front = new Set();
  /** @type {Record<number, number>} number → the trial whose scores it has */
  answers = {};
  /** Whether the best trial is better than the constant prediction; null if unknown. @type {boolean | null} */
  beats_constant = null;
  /** @type {Record<number, Record<number, Reached>>} number of a running trial → execution → its epoch */
  under_way = {};
  /** What `epochs` counts: epochs, or the steps of a script. */
  unit = "epoch";
  /** @type {Objective} */
  objective = { metric: "", direction: "min" };
  /** @type {Objective[]} */
  objectives = [];
  /** @type {Parameter[]} */
  space = [];
  /** @type {string[]} */
  states = [];
  /** @type {Map<string, Column> | null} */
  cachedColumns = null;
  /** @type {number[]} */
  withScore = [];
  scoredAt = -1;
  /** @type {{ version: number, lists: Map<string, number[]> }} */
  ranks = { version: -1, lists: new Map() };

  /** @param {number} job */
  constructor(job) {
    super();
    this.job = job;
    follow(job, cursorOfPage(), (events) => {
      this.readProgress(events);
      if (events.some((event) => RELOAD_EVENTS.has(event.type))) this.scheduleLoad();
    });
    for (const type of ["ty:server", "ty:session"])
      document.addEventListener(type, () => {
        if (this.failed && answers()) this.scheduleLoad(); // the events of the changes have been received
      });
    this.load();
  }

  clear() {
    this.place.clear();
    this.number = [];
    for (const name of PLAIN) this[name] = [];
    this.values = Object.create(null);
    this.metrics = Object.create(null);
  }

  /**
   * Read the epochs that running trials have reached from the points of their curves, without a request.
   * @param {LiveEvent[]} events
   */
  readProgress(events) {
    let further = false;
    for (const { type, trial, execution, x, points } of events) {
      const at = type === "metric" && x === this.unit ? this.under_way[trial]?.[execution] : null;
      const index = this.place.get(trial);
      if (!at || index === undefined) continue;
      const epoch = points.reduce((most, point) => Math.max(most, point[1]), at.epochs);
      this.epochs[index] += epoch - at.epochs;
      further ||= epoch > at.epochs;
      at.epochs = epoch;
    }
    if (further && !this.progressTimer) this.progressTimer = setTimeout(() => this.notifyProgress(), PAUSE);
  }

  notifyProgress() {
    this.progressTimer = 0;
    this.dispatchEvent(new Event("progress"));
  }

  scheduleLoad() {
    if (!this.timer) this.timer = setTimeout(() => this.load(), PAUSE);
  }

  async load() {
    this.timer = 0;
    const query = this.cursor ? `?after=${this.cursor}` : "";
    const response = await fetch(address(`/api/v1/jobs/${this.job}/trials/columns${query}`)).catch(() => null);
    this.failed = !response?.ok;
    if (response?.ok) this.update(await response.json());
    this.dispatchEvent(new Event("change"));
  }

  /** @param {ColumnsAnswer} body */
  update(body) {
    if (body.whole) this.clear();
    Object.assign(this, {
      cursor: body.cursor,
      unit: body.unit,
      objective: body.objective,
      objectives: body.objectives,
      space: body.space,
      states: body.states,
      waiting: body.waiting,
      front: new Set(body.front),
      answers: body.answers,
      beats_constant: body.beats_constant,
      under_way: body.under_way,
    });
    const places = body.number.map((trial) => {
      const known = this.place.get(trial);
      if (known !== undefined) return known;
      this.place.set(trial, this.number.length);
      return this.number.push(trial) - 1;
    });
    /**
     * @param {unknown[]} into
     * @param {unknown[]} from
     */
    const put = (into, from) => places.forEach((index, row) => (into[index] = from[row]));
    for (const name of PLAIN) put(this[name], body[name]);
    for (const { name } of body.space) {
      this.values[name] ??= this.blank();
      put(this.values[name], body.values[name]);
    }
    for (const name of new Set([...Object.keys(body.metrics), ...Object.keys(this.metrics)])) {
      this.metrics[name] ??= this.blank();
      put(this.metrics[name], Object.hasOwn(body.metrics, name) ? body.metrics[name] : body.number.map(() => null));
    }
    this.ready = true;
    this.version += 1;
    this.cachedColumns = null;
  }

  /** @returns {Values} */
  blank() {
    return Array(this.number.length).fill(null);
  }

  get size() {
    return this.number.length;
  }

  /** The columns to sort, filter and draw by. */
  get columns() {
    this.cachedColumns ??= new Map(this.makeColumns().map((column) => [column.key, column]));
    return this.cachedColumns;
  }

  /** @returns {Column[]} */
  makeColumns() {
    /**
     * @param {string} key
     * @param {string} label
     * @param {Values} values
     * @param {Column["kind"]} kind
     * @returns {Column}
     */
    const numeric = (key, label, values, kind = "fact") => ({ key, label, kind, numeric: true, log: false, values });
    const objective = this.objective.metric;
    return [
      numeric("number", "trial", this.number),
      { key: "state", label: "state", kind: "fact", numeric: false, values: this.state, categories: this.states },
      numeric("score", `${objective} (mean)`, this.score, "metric"),
      ...this.space.filter((parameter) => parameter.kind !== "fixed").map((parameter) => this.parameter(parameter)),
      ...Object.keys(this.metrics)
        .sort()
        .filter((name) => name !== objective)
        .map((name) => ({
          ...numeric(`m.${name}`, name, this.metrics[name], "metric"),
          isSet: SETTINGS_OF_TRAINING.has(name),
        })),
      numeric("std", "± spread", this.std),
      numeric("executions", "executions", this.executions),
      numeric("epochs", `${this.unit}s`, this.epochs),
      numeric("seconds", "seconds", this.seconds),
      numeric("finished", "finished", this.finished),
    ];
  }

  /**
   * @param {Parameter} parameter
   * @returns {Column}
   */
  parameter({ name, kind, sampling, values = [] }) {
    /** @type {Pick<Column, "key" | "label" | "kind" | "isSet" | "values">} */
    const shared = { key: `h.${name}`, label: name, kind: "hyperparameter", isSet: true, values: this.values[name] };
    return kind === "int" || kind === "float"
      ? { ...shared, numeric: true, log: sampling === "log" }
      : { ...shared, numeric: false, categories: values.map(String) };
  }

  /**
   * Return the value of a trial in a column as text.
   * @param {Column} column
   * @param {number} index
   */
  text(column, index) {
    const value = column.values[index];
    if (value === null || value === undefined) return column.kind === "hyperparameter" ? "inactive" : "–";
    if (column.categories) return column.categories[value];
    return column.isSet ? setting(value) : number(value);
  }

  /**
   * Return the value of a trial in a column as text; a score has its spread over executions.
   * @param {Column} column
   * @param {number} index
   */
  textWithSpread(column, index) {
    const text = this.text(column, index);
    return column.key === "score" && this.std[index] && text !== "–" ? `${text} ± ${number(this.std[index])}` : text;
  }

  /**
   * Return the key of the column that holds a metric.
   * @param {string} metric
   */
  keyOf(metric) {
    return metric === this.objective.metric ? "score" : `m.${metric}`;
  }

  /**
   * Return which values of a column are better; null where none are.
   * @param {string} key
   * @returns {Direction | null}
   */
  directionOf(key) {
    const objective = this.objectives.find(({ metric }) => this.keyOf(metric) === key);
    if (objective) return objective.direction;
    if (key === "score") return this.objective.direction;
    const column = this.columns.get(key);
    if (column?.kind !== "metric" || column.isSet) return null;
    return SMALLER_IS_BETTER.test(key) ? "min" : "max";
  }

  /** @param {Column["kind"]} kind */
  of(kind) {
    return [...this.columns.values()].filter((column) => column.kind === kind);
  }

  /**
   * Return the column with a key, which must exist.
   * @param {string} key
   */
  column(key) {
    const column = this.columns.get(key);
    if (!column) throw new RangeError(`no column ${key}`);
    return column;
  }

  /** Return the indices of trials with a score, in the order in which they were made. */
  scored() {
    if (this.scoredAt !== this.version) {
      this.scoredAt = this.version;
      this.withScore = [];
      for (let index = 0; index < this.size; index++)
        if (Number.isFinite(this.score[index])) this.withScore.push(index);
      this.withScore.sort((a, b) => this.number[a] - this.number[b]);
    }
    return this.withScore;
  }

  /**
   * Return the indices of trials with a score and a finite number in a column, best first.
   * @param {Column} column
   * @param {Direction} direction
   */
  ranked(column, direction) {
    if (this.ranks.version !== this.version) this.ranks = { version: this.version, lists: new Map() };
    const { lists } = this.ranks;
    const key = `${direction} ${column.key}`;
    const known = lists.get(key);
    if (known) return known;
    const sign = direction === "max" ? -1 : 1;
    const values = numbersOf(column);
    const ranked = this.scored()
      .filter((index) => Number.isFinite(values[index]))
      .sort((a, b) => sign * (values[a] - values[b]));
    lists.set(key, ranked);
    return ranked;
  }

  /**
   * Return the least and the greatest number of a column.
   * @param {Column} column
   * @returns {Range}
   */
  extent(column) {
    if (!column.span) {
      let [low, high] = [Infinity, -Infinity];
      for (const value of column.values) {
        if (value === null || !Number.isFinite(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
      column.span = [low, high];
    }
    return column.span;
  }

  /**
   * Return whether score `a` is better than `b`.
   * @param {number} a
   * @param {number} b
   */
  better(a, b) {
    return this.objective.direction === "max" ? a > b : a < b;
  }

  /**
   * Return a trial and its values in some columns as a sentence, for people who cannot see its dot.
   * @param {number} index
   * @param {Column[]} columns
   */
  describeTrial(index, columns = []) {
    const facts = columns.map((column) => `${column.label} ${this.text(column, index)}`);
    return [`Trial ${this.number[index]}`, ...facts].join(", ");
  }

  /**
   * Return a trial and its values in some columns, to show at its dot.
   * @param {number} index
   * @param {Column[]} columns
   * @param {string} foot
   * @returns {TipText}
   */
  tipOf(index, columns, foot = "") {
    const rows = columns.map((column) => ({ label: column.label, value: this.textWithSpread(column, index) }));
    return { title: `Trial ${this.number[index]}`, rows, foot };
  }
}

/** @param {Store} store */
export function bestOf(store) {
  const score = /** @type {number[]} */ (store.score);
  let best = -1;
  const completed = store.states.indexOf("completed");
  for (const index of store.scored()) {
    if (store.state[index] === completed && (best < 0 || store.better(score[index], score[best]))) best = index;
  }
  return best;
}

/**
 * Return the values of a column as numbers, for trials that are known to have one.
 * @param {Column} column
 */
export const numbersOf = (column) => /** @type {number[]} */ (column.values);
