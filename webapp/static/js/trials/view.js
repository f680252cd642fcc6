// What is looked at: filters, sort, columns, picked and compared trials, chart and axes. All of it stands in
// the address, and the table and every chart share it.
import { storeOf } from "./store.js";

const views = new Map();

export function viewOf(job) {
  if (!views.has(job)) views.set(job, new View(storeOf(job)));
  return views.get(job);
}

class View extends EventTarget {
  constructor(store) {
    super();
    this.store = store;
    this.read();
    addEventListener("popstate", () => {
      this.read();
      this.tell("all");
    });
    store.addEventListener("change", () => this.tell("data"));
  }

  read() {
    const query = new URLSearchParams(location.search);
    this.where = parse(query.get("where") ?? "");
    this.sort = query.get("sort") ?? "number";
    this.page = Math.max(1, Number(query.get("page")) || 1);
    this.picked = new Set(numbers(query.get("pick")));
    this.compared = numbers(query.get("compare"));
    this.onlyDiffering = query.get("only") === "differing";
    this.shown = query.has("cols") ? new Set(query.get("cols").split(",").filter(Boolean).map(word)) : null; // null: all
    this.chart = query.get("chart");
    this.asTable = query.get("as") === "table";
    this.axes = new Map([...query].filter(([name]) => name.startsWith("ax.")).map(([name, value]) => [name.slice(3), value]));
  }

  write(push = false) {
    const query = new URLSearchParams(location.search);
    const set = (name, value) => (value ? query.set(name, value) : query.delete(name));
    set("where", unparse(this.where));
    set("sort", this.sort === "number" ? "" : this.sort);
    set("page", this.page > 1 ? String(this.page) : "");
    set("pick", [...this.picked].join(","));
    set("compare", this.compared.join(","));
    set("only", this.onlyDiffering && this.compared.length ? "differing" : "");
    if (this.shown) query.set("cols", [...this.shown].map(code).join(","));
    else query.delete("cols");
    set("chart", this.chart);
    set("as", this.asTable ? "table" : "");
    for (const name of [...query.keys()].filter((key) => key.startsWith("ax."))) query.delete(name);
    for (const [name, value] of this.axes) query.set(`ax.${name}`, value);
    const text = query.toString().replaceAll("%2C", ",").replaceAll("%3B", ";").replaceAll("%3D", "=");
    history[push ? "pushState" : "replaceState"](null, "", text ? `?${text}` : location.pathname);
  }

  /** `what` changed: "filter", "sort", "page", "columns", "pick", "compare", "chart", "axes", "data" or "all". */
  tell(what) {
    if (["filter", "sort", "data", "all"].includes(what)) this.known = null;
    this.dispatchEvent(Object.assign(new Event("change"), { what }));
  }

  filter(key, condition) {
    if (condition) this.where.set(key, condition);
    else this.where.delete(key);
    this.page = 1;
    this.write();
    this.tell("filter");
  }

  clearFilters() {
    this.where.clear();
    this.page = 1;
    this.write();
    this.tell("filter");
  }

  sortBy(key) {
    this.sort = this.sort === key ? `-${key}` : key;
    this.page = 1;
    this.write();
    this.tell("sort");
  }

  turnTo(page) {
    this.page = page;
    this.write();
    this.tell("page");
  }

  pick(number) {
    if (!this.picked.delete(number)) this.picked.add(number);
    this.write();
    this.tell("pick");
  }

  unpickAll() {
    this.picked.clear();
    this.write();
    this.tell("pick");
  }

  /** Show these columns only; null for all. */
  showColumns(keys) {
    this.shown = keys;
    this.write();
    this.tell("columns");
  }

  /** Put these trials side by side; none ends it. */
  compare(trials) {
    this.compared = trials;
    this.write(true);
    this.tell("compare");
  }

  compareOnlyDiffering(on) {
    this.onlyDiffering = on;
    this.write();
    this.tell("compare");
  }

  show(chart) {
    this.chart = chart;
    this.axes.clear();
    this.write(true);
    this.tell("chart");
  }

  setAxis(name, value) {
    this.axes.set(name, value);
    this.write();
    this.tell("axes");
  }

  readAsTable(on) {
    this.asTable = on;
    this.write();
    this.tell("axes");
  }

  /** The columns of the table that may be shown: the number and the state always are. */
  get choosable() {
    return [...this.store.columns.values()].filter(({ key }) => !["number", "state", "seconds", "std"].includes(key));
  }

  get tableColumns() {
    const { columns } = this.store;
    const chosen = this.choosable.filter(({ key }) => !this.shown || this.shown.has(key));
    return [columns.get("number"), columns.get("state"), ...chosen];
  }

  /** One test for all filters; a trial without a value fits none. */
  get fits() {
    const tests = [];
    for (const [key, condition] of this.where) {
      const column = this.store.columns.get(key);
      if (!column) continue;
      const { values } = column;
      if (condition.one) {
        const wanted = new Set(condition.one.map((word) => column.categories?.indexOf(word) ?? -1));
        tests.push((index) => wanted.has(values[index]));
      } else {
        const { low, high } = condition;
        tests.push((index) => Number.isFinite(values[index]) && values[index] >= low && values[index] <= high);
      }
    }
    return (index) => tests.every((test) => test(index));
  }

  /** Indices of the trials that fit, in the order of the sort. */
  rows() {
    if (this.known) return this.known;
    const { store, fits } = this;
    const found = [];
    for (let index = 0; index < store.size; index++) if (fits(index)) found.push(index);
    const down = this.sort.startsWith("-");
    const column = store.columns.get(down ? this.sort.slice(1) : this.sort) ?? store.columns.get("number");
    const { values } = column;
    const sign = down ? -1 : 1;
    // What has no value stands last, whichever way round.
    found.sort((a, b) => {
      const one = values[a] ?? NaN;
      const two = values[b] ?? NaN;
      if (one === two) return store.number[a] - store.number[b];
      if (Number.isNaN(one)) return Number.isNaN(two) ? store.number[a] - store.number[b] : 1;
      return Number.isNaN(two) ? -1 : sign * (one - two);
    });
    this.known = found;
    return found;
  }
}

/** `1,5,9` → each number once. */
function numbers(text) {
  return [...new Set((text ?? "").split(",").map(Number).filter((number) => Number.isSafeInteger(number) && number > 0))];
}

/** `h.units=16..64;state=completed|failed` → conditions by column. */
function parse(text) {
  const found = new Map();
  for (const part of text.split(";").filter(Boolean)) {
    const [name, value = ""] = part.split("=");
    const range = value.split("..");
    if (range.length === 2) found.set(word(name), { low: range[0] === "" ? -Infinity : Number(range[0]), high: range[1] === "" ? Infinity : Number(range[1]) });
    else found.set(word(name), { one: value.split("|").map(word) });
  }
  return found;
}

function word(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // cut off by hand: it fits no column
  }
}

function unparse(where) {
  const end = (value) => (Number.isFinite(value) ? String(value) : "");
  return [...where].map(([key, { one, low, high }]) => `${code(key)}=${one ? one.map(code).join("|") : `${end(low)}..${end(high)}`}`).join(";");
}

const code = (text) => encodeURIComponent(text).replaceAll(".", text.includes("..") ? "%2E" : ".");
