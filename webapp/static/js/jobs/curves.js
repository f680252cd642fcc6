// <ty-curves job names [label] [trial | trials] [key] [mark] [final]>: live curves, with a line at the epoch `mark`. First it subscribes,
// then it loads the points so far, then it adds those that arrived meanwhile. A point is identified by its series and x,
// so adding it twice changes nothing.

/** @import { LiveEvent } from "./live.js" */
/** @import uPlot from "uplot" */
/** @import { AlignedData } from "uplot" */
/** @import { TipText } from "../charts/tip.js" */
/** @import { Line } from "../charts/curve-looks.js" */
/** @import { Drawing, Values } from "./chart.js" */
/** @import { Scale } from "../charts/axes.js" */
import { fences, fitsScale, hidesOutliers, smoothed, smoothingOf } from "../charts/axes.js";
import { entriesOf, looksOf, nearestPlace } from "../charts/curve-looks.js";
import { grouped, number, setting } from "../trials/words.js";
import { Chart } from "./chart.js";
import { lineAt } from "./marks.js";

const MAX_POINTS = 1500;
const MAX_LINES = 40;
const MOST_IN_TIP = 10;
const FEW = 4; // lines that need no help to be distinguished

/**
 * @typedef {{
 *   name: string, job: number, trial: number | null, execution: number | null, x: string,
 *   points: [number, number | null][], total_points: number,
 * }} MetricSeries
 */

export class Curves extends Chart {
  /** @type {string[]} */
  names = [];
  /** @type {string | null} */
  trial = null;
  /** @type {string[] | undefined} */
  only;
  /** @type {Map<string, Line>} */
  lines = new Map();
  /** @type {LiveEvent[] | null} */
  waiting = [];
  /** The unit of the x axis. */
  unit = "epoch";
  total = 0;
  shown = 0;
  frame = 0;
  drawn = "";
  /** The lines as drawn, in the order of the legend, and the colour of each. @type {[string, string][]} */
  coloured = [];
  /** The x values, and the values of each line before smoothing. @type {Values[]} */
  measured = [];
  /** A sentence about values outside the axes. */
  outside = "";
  /** Called with the trial whose line is clicked. @type {((trial: number) => void) | null} */
  pick = null;
  /** The trial whose line is nearest to the pointer. @type {number | null} */
  near = null;

  /** @override */
  begin() {
    this.names = (this.getAttribute("names") ?? "").split(",");
    this.trial = this.getAttribute("trial");
    this.only = this.getAttribute("trials")?.split(",");
    this.lines = new Map();
    this.total = 0;
    this.waiting = [];
    const title = this.getAttribute("label") ?? this.names.join(" and ");
    this.setAttribute("aria-label", `Curves of ${title}. Use the arrow keys.`);
    this.load();
  }

  /** @override */
  end() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    super.end();
  }

  async load() {
    const query = new URLSearchParams({ names: this.names.join(","), max_points: String(MAX_POINTS) });
    if (this.trial) query.set("trial", this.trial);
    else if (this.only) query.set("trials", this.only.join());
    else query.set("newest", String(MAX_LINES));
    const response = await fetch(`/api/v1/jobs/${this.job}/metrics?${query}`).catch(() => null);
    if (!this.stop) return; // it was removed meanwhile
    if (!response?.ok) {
      this.note.textContent = "The curves could not be loaded; reload the page to try again.";
      return;
    }
    this.lines.clear();
    this.total = this.shown = 0;
    /** @type {{ series: MetricSeries[] }} */
    const body = await response.json();
    for (const series of body.series) {
      const line = this.line(series.name, series.job, series.trial, series.execution);
      for (const [x, value] of series.points) line.points.set(x, value);
      this.unit = series.x;
      this.total += series.total_points;
      this.shown += series.points.length;
    }
    const early = this.waiting;
    this.waiting = null;
    if (early) this.onEvents(early);
    this.rebuild();
  }

  /**
   * Return the line of a series; a new one is empty.
   * @param {string} name
   * @param {number} job
   * @param {number | null} trial
   * @param {number | null} execution
   * @returns {Line}
   */
  line(name, job, trial, execution) {
    let label = this.names.length > 1 ? name : "";
    if (trial && !this.trial) label += ` trial ${trial}`;
    if (execution) label += ` #${execution}`;
    if (!trial && job !== this.job) label += ` job ${job}`;
    label = label.trim() || this.getAttribute("label") || name;
    const line = this.lines.get(label) ?? { name, job, trial: trial || null, execution, points: new Map() };
    this.lines.set(label, line);
    return line;
  }

  /**
   * @override
   * @param {LiveEvent[]} events
   */
  onEvents(events) {
    if (this.waiting) {
      this.waiting.push(...events);
      return;
    }
    let changed = false;
    for (const event of events) {
      if (event.type !== "metric" || !this.wants(event.trial)) continue;
      for (const [name, x, value] of event.points) {
        if (!this.names.includes(name)) continue;
        const { points } = this.line(name, event.job, event.trial, event.execution);
        // A point that arrived while the others were loaded is among them.
        if (!points.has(x)) {
          this.total += 1;
          this.shown += 1;
        }
        points.set(x, value);
        this.unit = event.x;
        changed = true;
      }
    }
    if (changed && !this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  /** @param {number} trial */
  wants(trial) {
    if (this.trial) return String(trial) === this.trial;
    return !this.only || this.only.includes(String(trial));
  }

  /** The figures of each curve, for a table. */
  get rows() {
    return [...this.lines].map(([label, { points }]) => {
      const values = [...points].sort(([a], [b]) => a - b).flatMap(([, value]) => (value === null ? [] : [value]));
      return [
        label,
        points.size,
        ...[values[0], Math.min(...values), Math.max(...values), values.at(-1)].map((value) => number(value)),
      ];
    });
  }

  /** The lines to draw: the newest, those of training first; jobs without trials follow the trials. */
  get ordered() {
    return [...this.lines]
      .slice(-MAX_LINES)
      .sort(
        ([, a], [, b]) =>
          this.names.indexOf(a.name) - this.names.indexOf(b.name) ||
          (a.trial ?? Infinity) - (b.trial ?? Infinity) ||
          a.job - b.job ||
          Number(a.execution) - Number(b.execution),
      );
  }

  /** Return the x values and the values of each line that its axes can show, before smoothing. */
  data() {
    const lines = this.ordered;
    const [x, y] = [this.scale("x"), this.scale("y")];
    const xs = [...new Set(lines.flatMap(([, { points }]) => [...points.keys()]))]
      .filter((value) => !x.log || value > 0)
      .sort((a, b) => a - b);
    const shows = (/** @type {number | null | undefined} */ value) =>
      value === null || value === undefined || (y.log && value <= 0) ? null : value;
    const columns = [xs, ...lines.map(([, { points }]) => xs.map((at) => shows(points.get(at))))];
    return { labels: lines.map(([label]) => label), columns };
  }

  draw() {
    const { labels, columns } = this.data();
    if (!this.chart || labels.join() !== this.drawn) {
      this.rebuild();
      return;
    }
    this.chart.setData(/** @type {AlignedData} */ (this.withSmoothing(columns)));
    this.showCounts(labels.length);
  }

  get weight() {
    return this.key ? smoothingOf(this.key) : 0;
  }

  /**
   * Add the moving average of each line, if they are smoothed.
   * @param {Values[]} columns
   */
  withSmoothing(columns) {
    this.measured = columns;
    const { weight } = this;
    const [, ...lines] = columns;
    return weight ? [...columns, ...lines.map((values) => smoothed(values, weight))] : columns;
  }

  /**
   * @override
   * @returns {Drawing | null}
   */
  picture() {
    if (this.waiting) return null; // still loading
    const { labels, columns } = this.data();
    this.drawn = labels.join();
    const lines = this.ordered.map(([, line]) => line);
    const looks = looksOf(lines);
    this.coloured = labels.map((label, at) => [label, looks[at].stroke]);
    const drawn = this.withSmoothing(columns);
    this.countOutside(columns);
    this.showCounts(labels.length);
    if (!columns[0].length) return null;
    const mark = Number(this.getAttribute("mark"));
    const raw = this.weight ? looks.map((look) => ({ ...look, width: 1, alpha: 0.3 })) : [];
    return {
      columns: drawn,
      series: [...raw, ...looks],
      // With many lines, those far from the pointer fade.
      more: {
        ...(mark ? lineAt(mark, `epoch ${mark}`) : {}),
        cursor: { focus: { prox: looks.length > FEW && !this.weight ? 24 : -1 } },
      },
      legend: entriesOf(this.ordered, looks, this.weight ? looks.length : 0),
    };
  }

  /**
   * @override
   * @param {number | null} low
   * @param {number | null} high
   * @param {Scale} scale
   */
  heights(low, high, scale) {
    if (!this.hidesOutliers || low === null || high === null) return super.heights(low, high, scale);
    const [least, most] = fences(this.values);
    const inside = this.values.filter((value) => value >= least && value <= most);
    const smallest = inside.reduce((a, b) => Math.min(a, b), high);
    const greatest = inside.reduce((a, b) => Math.max(a, b), low);
    return super.heights(Math.max(low, smallest), Math.min(high, greatest), scale);
  }

  get hidesOutliers() {
    return this.key !== "" && hidesOutliers(this.key, "drawn");
  }

  /** All values that are drawn. */
  get values() {
    return this.measured.slice(1).flatMap((column) => column.filter((value) => value !== null));
  }

  /**
   * Note how many values the axes leave out: zero and below on a logarithmic one, and outliers.
   * @param {Values[]} columns
   */
  countOutside(columns) {
    const drawn = columns.slice(1).reduce((sum, column) => sum + column.filter((value) => value !== null).length, 0);
    const finite = this.ordered.flatMap(([, { points }]) => [...points.values()].filter((value) => value !== null));
    const parts = [];
    if (finite.length > drawn)
      parts.push(`${grouped(finite.length - drawn)} at or below 0 have no place on a log axis`);
    if (this.hidesOutliers) {
      const [low, high] = fences(this.values);
      const far = this.values.filter((value) => !fitsScale(value, { low, high })).length;
      if (far) parts.push(`${grouped(far)} outlier${far > 1 ? "s" : ""} outside the drawn range`);
    }
    this.outside = parts.join("; ");
  }

  /**
   * @override
   * @param {uPlot} chart
   * @param {number} at
   * @returns {TipText | null}
   */
  textAt(chart, at) {
    const top = chart.cursor.top ?? 0;
    const { weight } = this;
    const rows = this.coloured.flatMap(([label, colour], line) => {
      const place = nearestPlace(chart, this.measured[line + 1], at);
      if (place === null) return [];
      const raw = Number(this.measured[line + 1][place]);
      const series = weight ? line + 1 + this.coloured.length : line + 1;
      if (!chart.series[series].show) return [];
      const value = weight ? Number(chart.data[series][place]) : raw;
      const text = weight ? `${number(value)} (measured ${number(raw)})` : number(raw);
      const { trial } = /** @type {Line} */ (this.lines.get(label));
      return [{ label, colour, value: text, trial, distance: Math.abs(chart.valToPos(value, "y") - top) }];
    });
    if (!rows.length) return null;
    const sorted = [...rows].sort((a, b) => a.distance - b.distance);
    this.near = sorted[0].trial;
    const listed = rows.length > MOST_IN_TIP ? sorted.slice(0, MOST_IN_TIP) : rows;
    const hidden = rows.length - listed.length;
    return {
      title: `${this.unit} ${setting(chart.data[0][at], 6)}`,
      rows: listed.map((row) => ({ ...row, nearest: rows.length > 1 && row === sorted[0] })),
      foot: hidden ? `and ${hidden} more lines` : undefined,
    };
  }

  /** @override */
  clicked() {
    if (this.near && this.pick) this.pick(this.near);
  }

  /** @param {number} lines */
  showCounts(lines) {
    const points = `${grouped(this.shown)} of ${grouped(this.total)} points`;
    const hidden = this.lines.size > lines ? `, the newest ${lines} of ${this.lines.size} lines` : "";
    const outside = this.outside ? `; ${this.outside}` : "";
    const none = this.hasAttribute("final")
      ? "No points were recorded."
      : "No points yet; they appear as they are measured.";
    this.note.textContent = this.total ? points + hidden + outside : none;
  }
}

customElements.define("ty-curves", Curves);
