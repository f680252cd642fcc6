// The choices of the person who looks at a search: filters, sort, columns, selected and compared trials. All of them are
// part of the address, and the table and every chart share them.

/** @import { Column, Condition } from "./types.js" */
/** @import { Store } from "./store.js" */
import { writeAddress } from "../shared/charts/settings.js";
import { bestOf, numbersOf, storeOf } from "./store.js";

/** The most columns of the table unless others are chosen. */
const MOST_COLUMNS = 8;
/** The columns that are always shown. */
const FIXED = ["number", "state"];

/** @typedef {"filter" | "sort" | "page" | "columns" | "selection" | "compare" | "data" | "progress" | "all"} ChangeKind */

/** @type {Map<number, View>} */
const views = new Map();

/**
 * Return the one view of a job on this page.
 * @param {number} job
 */
export function viewOf(job) {
  const view = views.get(job) ?? new View(storeOf(job));
  views.set(job, view);
  return view;
}

export class View extends EventTarget {
  /** @type {Map<string, Condition>} */
  where = new Map();
  /** The column that was chosen to sort by, with a minus for descending; null: the best score first. @type {string | null} */
  chosenSort = null;
  page = 1;
  /** @type {Set<number>} */
  selected = new Set();
  /** @type {number[]} */
  compared = [];
  onlyDiffering = false;
  /** @type {Set<string> | null} null: those of `defaultColumns` */
  shown = null;
  /** @type {Uint8Array | null} */
  cachedMask = null;
  /** @type {Uint32Array | null} */
  cachedRows = null;
  /** @type {{ sort: string, version: number, indices: Uint32Array } | null} */
  cachedOrder = null;

  /** @param {Store} store */
  constructor(store) {
    super();
    this.store = store;
    this.read();
    addEventListener("popstate", () => {
      this.read();
      this.notify("all");
    });
    store.addEventListener("change", () => this.notify("data"));
    store.addEventListener("progress", () => this.notify("progress"));
  }

  read() {
    const query = new URLSearchParams(location.search);
    this.where = parse(query.get("where") ?? "");
    this.chosenSort = query.get("sort");
    this.page = Math.max(1, Number(query.get("page")) || 1);
    this.selected = new Set(numbers(query.get("pick")));
    this.compared = numbers(query.get("compare"));
    this.onlyDiffering = query.get("only") === "differing";
    const columns = query.get("cols");
    this.shown = columns === null ? null : new Set(columns.split(",").filter(Boolean).map(word));
  }

  write(push = false) {
    const query = new URLSearchParams(location.search);
    const set = (/** @type {string} */ name, /** @type {string | null} */ value) =>
      value ? query.set(name, value) : query.delete(name);
    set("where", unparse(this.where));
    set("sort", this.chosenSort);
    set("page", this.page > 1 ? String(this.page) : "");
    set("pick", [...this.selected].join(","));
    set("compare", this.compared.join(","));
    set("only", this.onlyDiffering && this.compared.length ? "differing" : "");
    if (this.shown) query.set("cols", [...this.shown].map(code).join(","));
    else query.delete("cols");
    writeAddress(query, push);
  }

  /**
   * Call the listener after every change with its kind.
   * @param {(kind: ChangeKind) => void} listener
   * @returns {() => void} removes the listener
   */
  onChange(listener) {
    const handle = (/** @type {Event} */ event) => listener(/** @type {CustomEvent<ChangeKind>} */ (event).detail);
    this.addEventListener("change", handle);
    return () => this.removeEventListener("change", handle);
  }

  /** @param {ChangeKind} kind */
  notify(kind) {
    if (["filter", "data", "all"].includes(kind)) this.cachedMask = null;
    if (["filter", "sort", "data", "all"].includes(kind)) this.cachedRows = null;
    this.dispatchEvent(new CustomEvent("change", { detail: kind }));
  }

  /**
   * @param {string} key
   * @param {Condition | null} condition
   */
  filter(key, condition) {
    if (condition) this.where.set(key, condition);
    else this.where.delete(key);
    this.page = 1;
    this.write();
    this.notify("filter");
  }

  clearFilters() {
    this.where.clear();
    this.page = 1;
    this.write();
    this.notify("filter");
  }

  get sort() {
    return this.chosenSort ?? this.bestFirst("score");
  }

  /**
   * Return the sort by a column with its best value first; the smallest, where no value is better.
   * @param {string} key
   */
  bestFirst(key) {
    return this.store.directionOf(key) === "max" ? `-${key}` : key;
  }

  /**
   * Sort by a column: its best value first, and with a second click the other way.
   * @param {string} key
   */
  sortBy(key) {
    const first = this.bestFirst(key);
    const other = first === key ? `-${key}` : key;
    this.chosenSort = this.sort === first ? other : first;
    this.page = 1;
    this.write();
    this.notify("sort");
  }

  /** @param {number} page */
  turnTo(page) {
    this.page = page;
    this.write();
    this.notify("page");
  }

  /** @param {number} number */
  toggleSelected(number) {
    if (!this.selected.delete(number)) this.selected.add(number);
    this.write();
    this.notify("selection");
  }

  clearSelection() {
    this.selected.clear();
    this.write();
    this.notify("selection");
  }

  /**
   * Show these columns only; null for the default ones.
   * @param {Set<string> | null} keys
   */
  showColumns(keys) {
    this.shown = keys;
    this.write();
    this.notify("columns");
  }

  /**
   * Compare these trials side by side; an empty list ends the comparison.
   * @param {number[]} trials
   */
  compare(trials) {
    this.compared = trials;
    this.write(true);
    this.notify("compare");
  }

  /** @param {boolean} on */
  compareOnlyDiffering(on) {
    this.onlyDiffering = on;
    this.write();
    this.notify("compare");
  }

  /** The columns of the table that may be shown: the number and the state always are. */
  /** @returns {Column[]} */
  get choosable() {
    const hidden = new Set([...FIXED, "std"]);
    if (this.store.columns.has("h.learning_rate")) hidden.add("m.lr"); // the same column twice, without a schedule
    return [...this.store.columns.values()].filter(({ key }) => !hidden.has(key));
  }

  /**
   * The keys of the columns that are shown unless others are chosen: the score and other objectives, and as many
   * hyperparameters as fit. All others are in the menu.
   */
  get defaultColumns() {
    const { store } = this;
    const outcome = ["score", ...store.objectives.map(({ metric }) => store.keyOf(metric))];
    const hyperparameters = this.winnersFirst(store.of("hyperparameter")).map(({ key }) => key);
    const rest = ["seconds", "epochs", "finished"];
    const keys = [...new Set([...outcome, ...hyperparameters, ...rest])].filter((key) => store.columns.has(key));
    return new Set(keys.slice(0, MOST_COLUMNS - FIXED.length));
  }

  get shownColumns() {
    return this.shown ?? this.defaultColumns;
  }

  get tableColumns() {
    const shown = this.shownColumns;
    const chosen = this.winnersFirst(this.choosable.filter(({ key }) => shown.has(key)));
    return [...FIXED.map((key) => this.store.column(key)), ...chosen];
  }

  /**
   * Return the columns with the hyperparameters that are inactive in the best trial after its own: a search over
   * several templates has many that its winner lacks.
   * @param {Column[]} columns
   */
  winnersFirst(columns) {
    const best = bestOf(this.store);
    const lacks = (/** @type {Column} */ { kind, values }) =>
      best >= 0 && kind === "hyperparameter" && (values[best] ?? null) === null;
    const others = columns.filter(lacks);
    if (!others.length) return columns;
    const last = columns.findLastIndex(({ kind }) => kind === "hyperparameter");
    const before = columns.slice(0, last + 1).filter((column) => !lacks(column));
    return [...before, ...others, ...columns.slice(last + 1)];
  }

  /** Which trials fit all filters: a byte each, 1 for those that do. A trial without a value fits none. */
  get mask() {
    this.cachedMask ??= this.computeMask();
    return this.cachedMask;
  }

  /** One test for all filters. */
  get fits() {
    const { mask } = this;
    return (/** @type {number} */ index) => mask[index] === 1;
  }

  computeMask() {
    const mask = new Uint8Array(this.store.size).fill(1);
    for (const [key, condition] of this.where) {
      const column = this.store.columns.get(key);
      if (!column) continue;
      const values = numbersOf(column);
      const wanted = condition.one && new Set(condition.one.map((word) => column.categories?.indexOf(word) ?? -1));
      const { low = -Infinity, high = Infinity } = condition;
      for (let index = 0; index < mask.length; index++) {
        const value = values[index];
        const fits = wanted ? wanted.has(value) : Number.isFinite(value) && value >= low && value <= high;
        if (!fits) mask[index] = 0;
      }
    }
    return mask;
  }

  /** Return the indices of the trials that fit, in the order of the sort. */
  rows() {
    const { mask } = this;
    this.cachedRows ??= this.order().filter((index) => mask[index] === 1);
    return this.cachedRows;
  }

  /** Return the indices of all trials, sorted; trials without a value come last in both directions. */
  order() {
    const { store, sort } = this;
    if (this.cachedOrder?.sort === sort && this.cachedOrder.version === store.version) return this.cachedOrder.indices;
    const down = sort.startsWith("-");
    const column = store.columns.get(down ? sort.slice(1) : sort) ?? store.column("number");
    const last = down ? -Infinity : Infinity;
    const values = Float64Array.from(column.values, (value) => value ?? last);
    const sign = down ? -1 : 1;
    const indices = Uint32Array.from(values, (_, index) => index).sort((a, b) =>
      values[a] === values[b] ? store.number[a] - store.number[b] : sign * (values[a] - values[b]),
    );
    this.cachedOrder = { sort, version: store.version, indices };
    return indices;
  }
}

/**
 * `1,5,9` → each number once.
 * @param {string | null} text
 */
function numbers(text) {
  return [
    ...new Set(
      (text ?? "")
        .split(",")
        .map(Number)
        .filter((number) => Number.isSafeInteger(number) && number > 0),
    ),
  ];
}

/**
 * `h.units=16..64;state=completed|failed` → conditions by column.
 * @param {string} text
 */
function parse(text) {
  /** @type {Map<string, Condition>} */
  const found = new Map();
  for (const part of text.split(";").filter(Boolean)) {
    const [name, value = ""] = part.split("=");
    const range = value.split("..");
    if (range.length === 2)
      found.set(word(name), {
        low: range[0] === "" ? -Infinity : Number(range[0]),
        high: range[1] === "" ? Infinity : Number(range[1]),
      });
    else found.set(word(name), { one: value.split("|").map(word) });
  }
  return found;
}

/** @param {string} text */
function word(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not encoded: it matches no column
  }
}

/** @param {Map<string, Condition>} where */
function unparse(where) {
  const end = (/** @type {number | undefined} */ value) => (Number.isFinite(value) ? String(value) : "");
  return [...where]
    .map(([key, { one, low, high }]) => `${code(key)}=${one ? one.map(code).join("|") : `${end(low)}..${end(high)}`}`)
    .join(";");
}

/** @param {string} text */
const code = (text) => encodeURIComponent(text).replaceAll(".", text.includes("..") ? "%2E" : ".");
