// <ty-traffic-chart key>: one chart of the requests of an endpoint. All charts of the page have one time axis: dragging
// across one of them shows that time in all, and so does the line at the pointer.

/** @import { AlignedData, Options } from "uplot" */
/** @import { Scale } from "../../shared/charts/axes.js" */
/** @import { Table } from "../../shared/charts/types.js" */
/** @import { TipText } from "../../shared/charts/tip.js" */
/** @import { Drawing, Values } from "../../shared/charts/chart.js" */
/** @import { Mark } from "../../shared/charts/marks.js" */
/** @import { TrafficKind, TrafficLine } from "./figures.js" */
/** @import { Traffic, TrafficStore } from "./store.js" */
import uPlot from "../../../vendor/uplot-1.6.32/uPlot.esm.js";
import { smoothed, smoothingOf } from "../../shared/charts/axes.js";
import { Chart } from "../../shared/charts/chart.js";
import { drawMarks } from "../../shared/charts/marks.js";
import { tip } from "../../shared/charts/tip.js";
import { grouped } from "../../shared/words.js";
import { shown } from "./figures.js";
import { seconds } from "./store.js";
import { momentWords, timeMarks } from "./times.js";

/** The name of the common time axis in the settings of charts. */
export const TIME = "time";
const SYNC = uPlot.sync("traffic");

export class TrafficChart extends Chart {
  /** @type {TrafficStore} */
  store;
  /** @type {TrafficKind} */
  kind;
  /** @type {TrafficLine[]} */
  lines = [];
  /** @type {Mark[]} */
  marks = [];
  /** The lines that the chart was built for. */
  built = "";

  /** @override */
  keyOf(/** @type {"x" | "y"} */ axis) {
    return axis === "x" ? TIME : this.key;
  }

  /** @override */
  begin() {
    this.setAttribute("aria-label", `${this.kind.title}, ${this.kind.unit}, over time. Use the arrow keys.`);
    this.store.addEventListener("change", this.onData);
    this.rebuild();
  }

  /** @override */
  end() {
    this.store.removeEventListener("change", this.onData);
    super.end();
  }

  onData = () => {
    const { data } = this.store;
    if (!data) return;
    const columns = this.columns(data);
    if (this.chart && this.built === this.signature()) {
      this.chart.setData(/** @type {AlignedData} */ (columns));
    } else this.rebuild();
  };

  /**
   * Read the lines and marks from new data, and return the columns to draw.
   * @param {Traffic} data
   * @returns {Values[]}
   */
  columns(data) {
    this.lines = this.kind.lines(data);
    this.marks = data.served
      .filter(({ begin }) => seconds(begin) >= seconds(data.begin))
      .map(({ begin, version, kind }) => ({
        x: seconds(begin),
        label: `${kind === "rollback" ? "← " : ""}${version ? `v${version}` : "down"}`,
      }));
    const weight = smoothingOf(this.key);
    const values = this.lines.map((line) => (weight ? smoothed(line.values, weight) : line.values));
    return [data.points.map(({ at }) => seconds(at)), ...values];
  }

  signature = () => JSON.stringify(this.lines.map(({ label, colour }) => [label, colour]));

  /**
   * @override
   * @returns {Drawing | null}
   */
  picture() {
    const { data } = this.store;
    if (!data) return null;
    const columns = this.columns(data);
    this.built = this.signature();
    return {
      columns,
      series: this.lines.map(({ colour, dash = [] }) => ({ stroke: colour, dash, width: 1.5, spanGaps: false })),
      legend: this.lines.map(({ label, colour, dash = [] }, at) => ({ label, colour, dash, series: [at + 1] })),
      more: {
        cursor: { sync: { key: SYNC.key, setSeries: false }, focus: { prox: -1 } },
        hooks: { draw: [(chart) => drawMarks(chart, this.marks)] },
      },
    };
  }

  /**
   * @override
   * @param {Drawing} drawing
   * @returns {Options}
   */
  options(drawing) {
    const options = super.options(drawing);
    const [{ stroke, grid, ticks, font }, y] = options.axes ?? [];
    const values = (/** @type {uPlot} */ chart, /** @type {number[]} */ marks) => timeMarks(chart, marks);
    return {
      ...options,
      scales: { ...options.scales, x: { ...options.scales?.x, time: true } },
      axes: [{ stroke, grid, ticks, font, space: 70, values }, y],
    };
  }

  /**
   * @override
   * @param {number | null} low
   * @param {number | null} high
   * @param {Scale} scale
   * @returns {[number | null, number | null]}
   */
  heights(low, high, scale) {
    if (scale.log || scale.low !== undefined) return super.heights(low, high, scale);
    return super.heights(0, high || 1, scale); // rates are read against zero
  }

  /**
   * @override
   * @param {uPlot} chart
   */
  showTip(chart) {
    // The other charts follow the pointer with their line only.
    if (this.matches(":hover") || document.activeElement === this) super.showTip(chart);
    else tip.hide(this);
  }

  /**
   * @override
   * @param {uPlot} chart
   * @param {number} at
   * @returns {TipText | null}
   */
  textAt(chart, at) {
    const { data } = this.store;
    const point = data?.points[at];
    if (!data || !point) return null;
    const rows = this.lines.flatMap(({ label, colour, values }, line) =>
      chart.series[line + 1].show && values[at] !== null ? [{ label, colour, value: this.written(values[at]) }] : [],
    );
    const begin = seconds(point.at);
    const title = `${momentWords(begin, data.step_seconds)} – ${momentWords(begin + point.seconds, data.step_seconds, true)}`;
    return { title, rows, foot: `${grouped(point.requests)} requests` };
  }

  /** @param {number | null} value */
  written(value) {
    return `${shown(value)}${this.kind.unit === "ms" ? " ms" : ""}`;
  }

  /** @returns {Table} */
  table() {
    const { data } = this.store;
    const lines = data ? this.kind.lines(data) : []; // the chart itself is not on the page now
    const head = [{ label: "from" }, ...lines.map(({ label }) => ({ label, num: true }))];
    const rows = (data?.points ?? []).map(({ at }, place) => [
      momentWords(seconds(at), 1, false, true),
      ...lines.map(({ values }) => this.written(values[place])),
    ]);
    return { head, rows: rows.reverse() };
  }
}

customElements.define("ty-traffic-chart", TrafficChart);
