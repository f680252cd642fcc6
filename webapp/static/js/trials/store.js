// The trials of a search as columns, kept up to date: the page asks for what changed, never for a row each.
import { follow } from "../jobs/live.js";
import { number, setting } from "./words.js";

const PAUSE = 1000; // one question for a burst of events
const TELLING = new Set(["trial", "execution", "attempt", "state"]);
const SET = new Set(["lr", "loss_scale", "skipped_steps"]); // told each epoch like metrics, but the training's own: none is better
const PLAIN = ["state", "score", "std", "by_hand", "restarts", "started", "finished", "executions", "epochs"];

const stores = new Map();

/** The one store of a job on this page. */
export function storeOf(job) {
  if (!stores.has(job)) stores.set(job, new Store(job));
  return stores.get(job);
}

class Store extends EventTarget {
  constructor(job) {
    super();
    this.job = job;
    this.ready = false;
    this.failed = false;
    this.version = 0;
    this.clear();
    const start = Number(document.querySelector("[data-cursor]")?.dataset.cursor ?? 0);
    follow(job, start, (events) => {
      this.hear(events);
      if (events.some((event) => TELLING.has(event.type))) this.soon();
    });
    this.load();
  }

  clear() {
    this.place = new Map(); // number → index
    this.number = [];
    for (const name of PLAIN) this[name] = [];
    this.values = Object.create(null); // names are the users': none may be a prototype's
    this.metrics = Object.create(null);
    this.waiting = {};
    this.front = new Set(); // numbers of the trials that no other beats in all objectives
    this.answers = {}; // number → the trial whose scores it has
    this.under_way = {}; // number of a running trial → execution → its epoch, of how many
  }

  /** How far running trials are stands in the points of their curves: nobody is asked for it. */
  hear(events) {
    let further = false;
    for (const { type, trial, execution, x, points } of events) {
      const at = type === "metric" && x === "epoch" ? this.under_way[trial]?.[execution] : null;
      if (!at || !this.place.has(trial)) continue;
      const epoch = points.reduce((most, point) => Math.max(most, point[1]), at.epochs);
      this.epochs[this.place.get(trial)] += epoch - at.epochs;
      further ||= epoch > at.epochs;
      at.epochs = epoch;
    }
    if (further) this.telling ??= setTimeout(() => this.tellProgress(), PAUSE);
  }

  tellProgress() {
    this.telling = null;
    this.dispatchEvent(new Event("progress"));
  }

  soon() {
    this.timer ??= setTimeout(() => this.load(), PAUSE);
  }

  async load() {
    this.timer = null;
    const query = this.cursor ? `?after=${this.cursor}` : "";
    const answer = await fetch(`/api/v1/jobs/${this.job}/trials/columns${query}`).catch(() => null);
    this.failed = !answer?.ok;
    if (answer?.ok) this.take(await answer.json());
    this.dispatchEvent(new Event("change"));
  }

  take(body) {
    if (body.whole) this.clear();
    Object.assign(this, {
      cursor: body.cursor,
      objective: body.objective,
      objectives: body.objectives,
      space: body.space,
      states: body.states,
      waiting: body.waiting,
      front: new Set(body.front),
      answers: body.answers,
      under_way: body.under_way,
    });
    const grown = body.number.map((trial) => {
      if (!this.place.has(trial)) {
        this.place.set(trial, this.number.length);
        this.number.push(trial);
      }
      return this.place.get(trial);
    });
    const put = (into, from) => grown.forEach((index, row) => (into[index] = from[row]));
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
    this.described = null;
  }

  blank() {
    return Array(this.number.length).fill(null);
  }

  get size() {
    return this.number.length;
  }

  /** Columns to sort, filter and draw by: {key, label, kind, numeric, log, isSet, values, categories}. */
  get columns() {
    this.described ??= new Map(this.describe().map((column) => [column.key, column]));
    return this.described;
  }

  describe() {
    const numeric = (key, label, values, kind = "fact", log = false) => ({
      key,
      label,
      kind,
      numeric: true,
      log,
      values,
    });
    const objective = this.objective.metric;
    return [
      numeric("number", "trial", this.number),
      { key: "state", label: "state", kind: "fact", numeric: false, values: this.state, categories: this.states },
      numeric("score", `${objective} (mean)`, this.score, "metric"),
      ...this.space.filter((parameter) => parameter.kind !== "fixed").map((parameter) => this.parameter(parameter)),
      ...Object.keys(this.metrics)
        .sort()
        .filter((name) => name !== objective)
        .map((name) => ({ ...numeric(`m.${name}`, name, this.metrics[name], "metric"), isSet: SET.has(name) })),
      numeric("std", "± spread", this.std),
      numeric("epochs", "epochs", this.epochs),
      numeric(
        "seconds",
        "seconds",
        this.finished.map((end, index) => (end && this.started[index] ? end - this.started[index] : null)),
      ),
    ];
  }

  parameter({ name, kind, sampling, values }) {
    const shared = { key: `h.${name}`, label: name, kind: "hyperparameter", isSet: true, values: this.values[name] };
    return kind === "int" || kind === "float"
      ? { ...shared, numeric: true, log: sampling === "log" }
      : { ...shared, numeric: false, categories: values.map(String) };
  }

  /** What stands in a column for a trial, as text. */
  text(column, index) {
    const value = column.values[index];
    if (value === null || value === undefined) return column.kind === "hyperparameter" ? "inactive" : "–";
    if (!column.numeric) return column.categories[value];
    return column.isSet ? setting(value) : number(value);
  }

  /** The same, with the spread over executions beside a score. */
  told(column, index) {
    const text = this.text(column, index);
    return column.key === "score" && this.std[index] && text !== "–" ? `${text} ± ${number(this.std[index])}` : text;
  }

  /** The key of the column that holds a metric. */
  keyOf(metric) {
    return metric === this.objective.metric ? "score" : `m.${metric}`;
  }

  of(kind) {
    return [...this.columns.values()].filter((column) => column.kind === kind);
  }

  /** Trials that have a score, in the order in which they were made. */
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

  /** Trials with a score and a finite number in a column, best first. */
  ranked(column, direction) {
    if (this.ranks?.version !== this.version) this.ranks = { version: this.version, lists: new Map() };
    const { lists } = this.ranks;
    const key = `${direction} ${column.key}`;
    if (!lists.has(key)) {
      const sign = direction === "max" ? -1 : 1;
      const { values } = column;
      lists.set(
        key,
        this.scored()
          .filter((index) => Number.isFinite(values[index]))
          .sort((a, b) => sign * (values[a] - values[b])),
      );
    }
    return lists.get(key);
  }

  /** The least and the greatest number of a column. */
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

  better(a, b) {
    return this.objective.direction === "max" ? a > b : a < b;
  }

  /** The sentence that tells a trial to somebody who cannot see its dot. */
  tell(index, columns = []) {
    const facts = columns.map((column) => `${column.label} ${this.text(column, index)}`);
    return [`Trial ${this.number[index]}`, ...facts].join(", ");
  }
}
