// How the charts of this page are shown: which one is enlarged, whether it is read as a table, and the axes of each.
// All of it is in the address (`?chart=slice&ax.slice.ylog=on`), so that a link shows the same charts.

/** @typedef {"enlarge" | "table" | "axes" | "all"} SettingChange */
/** @typedef {{ kind: SettingChange, chart: string | null }} Changed */

const PREFIX = "ax.";

export class Settings extends EventTarget {
  /** @type {string | null} */
  enlarged = null;
  asTable = false;
  /** @type {Map<string, Map<string, string>>} chart → setting → value */
  values = new Map();

  constructor() {
    super();
    this.read();
    addEventListener("popstate", () => {
      this.read();
      this.notify("all", null);
    });
  }

  read() {
    const query = new URLSearchParams(location.search);
    this.enlarged = query.get("chart");
    this.asTable = query.get("as") === "table";
    this.values = new Map();
    for (const [name, value] of query) {
      if (!name.startsWith(PREFIX)) continue;
      const key = name.slice(PREFIX.length);
      const dot = key.lastIndexOf(".");
      if (dot > 0) this.put(key.slice(0, dot), key.slice(dot + 1), value);
      else if (key === "compared")
        this.put("compare", "metric", value); // links made before each chart had its own
      else if (this.enlarged) this.put(this.enlarged, key, value);
    }
  }

  write(push = false) {
    const query = new URLSearchParams(location.search);
    for (const name of [...query.keys()].filter((key) => key.startsWith(PREFIX))) query.delete(name);
    if (this.enlarged) query.set("chart", this.enlarged);
    else query.delete("chart");
    if (this.asTable && this.enlarged) query.set("as", "table");
    else query.delete("as");
    for (const [chart, values] of this.values)
      for (const [name, value] of values) query.set(`${PREFIX}${chart}.${name}`, value);
    writeAddress(query, push);
  }

  /**
   * @param {string} chart
   * @param {string} name
   * @param {string} value
   */
  put(chart, name, value) {
    const values = this.values.get(chart) ?? new Map();
    this.values.set(chart, values.set(name, value));
  }

  /**
   * @param {string} chart
   * @param {string} name
   */
  get(chart, name) {
    return this.values.get(chart)?.get(name);
  }

  /**
   * Change settings of a chart; null returns to the default.
   * @param {string} chart
   * @param {Record<string, string | null>} changes
   * @param {boolean} kept in the address, which browsers allow some hundred times a minute
   */
  set(chart, changes, kept = true) {
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) this.values.get(chart)?.delete(name);
      else this.put(chart, name, value);
    }
    if (kept) this.write();
    this.notify("axes", chart);
  }

  /**
   * Return a chart to its defaults.
   * @param {string} chart
   */
  reset(chart) {
    this.values.delete(chart);
    this.write();
    this.notify("axes", chart);
  }

  /**
   * Enlarge a chart in its place; null shows all of the same size.
   * @param {string | null} chart
   */
  enlarge(chart) {
    this.enlarged = chart;
    this.asTable = false;
    this.write(true);
    this.notify("enlarge", chart);
  }

  /** @param {boolean} on */
  readAsTable(on) {
    this.asTable = on;
    this.write();
    this.notify("table", this.enlarged);
  }

  /**
   * Call the listener after every change.
   * @param {(changed: Changed) => void} listener
   * @returns {() => void} removes the listener
   */
  onChange(listener) {
    const handle = (/** @type {Event} */ event) => listener(/** @type {CustomEvent<Changed>} */ (event).detail);
    this.addEventListener("change", handle);
    return () => this.removeEventListener("change", handle);
  }

  /**
   * @param {SettingChange} kind
   * @param {string | null} chart
   */
  notify(kind, chart) {
    this.dispatchEvent(new CustomEvent("change", { detail: { kind, chart } }));
  }
}

/**
 * Replace the query of the address; commas and the signs of filters stay readable.
 * @param {URLSearchParams} query
 * @param {boolean} push
 */
export function writeAddress(query, push) {
  const text = query.toString().replaceAll("%2C", ",").replaceAll("%3B", ";").replaceAll("%3D", "=");
  history[push ? "pushState" : "replaceState"](null, "", text ? `?${text}` : location.pathname);
}

/**
 * Return the address of this page with a chart enlarged, or none.
 * @param {string | null} chart
 */
export function addressOf(chart) {
  const query = new URLSearchParams(location.search);
  query.delete("as");
  if (chart) query.set("chart", chart);
  else query.delete("chart");
  return `?${query}`;
}

/** The settings of this page's charts. */
export const settings = new Settings();
