// <ty-curves job names [label] [trial | trials] [key] [mark] [final]>: live curves, with a line at the epoch `mark`. First it subscribes,
// then it loads the points so far, then it adds those that arrived meanwhile.

/** @import { LiveEvent } from "../shared/connection/live.js" */
/** @import uPlot from "uplot" */
/** @import { AlignedData, Axis } from "uplot" */
/** @import { TipText } from "../shared/charts/tip.js" */
/** @import { Line } from "./curve-looks.js" */
/** @import { MetricSeries, Spot } from "./curve-points.js" */
/** @import { Times } from "./training-time.js" */
/** @import { Drawing, Values } from "../shared/charts/chart.js" */
/** @import { Scale } from "../shared/charts/axes.js" */
import { address } from "../shared/addresses.js";
import { fences, fitsScale, hidesOutliers, isTimed, smoothed, smoothingOf } from "../shared/charts/axes.js";
import { Chart } from "../shared/charts/chart.js";
import { lineAt } from "../shared/charts/marks.js";
import { readNames } from "../shared/names.js";
import { grouped, number, setting } from "../shared/words.js";
import { CurveLines } from "./curve-lines.js";
import { entriesOf, looksOf, NEAR, nearestPlace } from "./curve-looks.js";
import { columnsOf, sampleOf } from "./curve-points.js";
import { TIME_STEPS, timeWords, trainingTimes } from "./training-time.js";

const MAX_POINTS = 1500;
const MOST_IN_TIP = 10;
const FEW = 4; // lines that need no help to be distinguished
const MOST_TIMES = 8000; // places on an axis of times, which lines rarely share

/** @type {Partial<Axis>} */
const TIME_AXIS = {
  incrs: TIME_STEPS,
  space: 70,
  values: (_, marks) => marks.map((mark) => (mark === null ? "" : timeWords(mark))),
};

export class Curves extends Chart {
  /** The lines, once their points were loaded. */
  lines = new CurveLines({ job: 0, names: [], trial: null, title: null });
  isLoaded = false;
  /** The lines that were requested last. */
  loading = this.lines;
  /** @type {LiveEvent[] | null} */
  waiting = [];
  /** How many of the points are left out on an axis of times, which would have too many places. */
  left = 0;
  frame = 0;
  drawn = "";
  /** The lines as drawn, in the order of the legend, and the colour of each. @type {[string, string][]} */
  coloured = [];
  /** The x values, and the values of each line before smoothing. @type {Values[]} */
  measured = [];
  /** The points of each line at their places on the x axis. @type {Spot[][]} */
  spots = [];
  /** The times of training, once they are needed. @type {Map<Line, Times> | null} */
  known = null;
  /** A sentence about values outside the axes. */
  outside = "";
  /** Called with the trial whose line is clicked. @type {((trial: number) => void) | null} */
  pick = null;
  /** The trial whose line is nearest to the pointer. @type {number | null} */
  near = null;

  /** @override */
  begin() {
    const names = readNames(this.getAttribute("names") ?? "");
    const title = this.getAttribute("label");
    const only = this.getAttribute("trials")?.split(",");
    this.setAttribute("aria-label", `Curves of ${title ?? names.join(" and ")}. Use the arrow keys.`);
    this.load(new CurveLines({ job: this.job, names, trial: this.getAttribute("trial"), only, title }));
  }

  /**
   * Draw the lines of other trials as soon as their points are there; until then, the chart stays as it is.
   * @param {Record<string, string>} attributes
   * @returns {boolean} false if they differ in more than the trials, or this element is not on the page
   */
  show({ trials, ...others }) {
    if (Object.entries(others).some(([name, value]) => this.getAttribute(name) !== value)) return false;
    if (this.getAttribute("trials") === trials) return true;
    if (!this.stop) return false;
    this.setAttribute("trials", trials);
    this.begin();
    return true;
  }

  /** @override */
  end() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    super.end();
  }

  /** @param {CurveLines} lines */
  async load(lines) {
    this.loading = lines;
    this.waiting = [];
    const response = await fetch(this.sourceOf(lines)).catch(() => null);
    if (this.isOutdated(lines)) return;
    if (!response?.ok) {
      this.isLoaded = false;
      this.clear();
      this.note.textContent = "The curves could not be loaded; reload the page to try again.";
      this.reportRows();
      return;
    }
    /** @type {{ series: MetricSeries[] }} */
    const body = await response.json();
    if (this.isOutdated(lines)) return;
    this.change(() => {
      this.lines = lines;
      lines.read(body.series);
    });
    this.isLoaded = true;
    const early = this.waiting;
    this.waiting = null;
    if (early) this.onEvents(early);
    this.rebuild();
    this.reportRows();
  }

  /**
   * Return the address of the stored series.
   * @param {CurveLines} lines
   */
  sourceOf({ query }) {
    query.set("max_points", String(MAX_POINTS));
    return address(`/api/v1/jobs/${this.job}/metrics?${query}`);
  }

  /**
   * Return whether this element was removed, or other lines were requested later.
   * @param {CurveLines} lines
   */
  isOutdated(lines) {
    return !this.stop || this.loading !== lines;
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
    if (this.change(() => this.lines.add(events)) && !this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
        this.reportRows();
      });
    }
  }

  /** Report other figures, for a table in place of the chart. */
  reportRows() {
    this.dispatchEvent(new Event("ty:rows", { bubbles: true }));
  }

  /**
   * Change the lines, and report another unit of the x axis.
   * @template T
   * @param {() => T} act
   */
  change(act) {
    const before = this.unit;
    const result = act();
    if (this.unit !== before) this.dispatchEvent(new Event("ty:unit"));
    return result;
  }

  /** The unit of the x axis. */
  get unit() {
    return this.lines.unit;
  }

  /** The figures of each curve, for a table. */
  get rows() {
    return this.isLoaded ? this.lines.figures : [];
  }

  /** Whether the x axis is the time of training. */
  get isTimed() {
    return this.key !== "" && isTimed(this.key);
  }

  /** The times of training at the points of the drawn lines. */
  get times() {
    this.known ??= trainingTimes(this.lines.ordered.map(([, line]) => line));
    return this.known;
  }

  /**
   * Return the points of a line at their places on the x axis.
   * @param {Line} line
   * @param {number} most places on an axis of times
   * @returns {Spot[]}
   */
  spotsOf(line, most) {
    if (!this.isTimed) return [...line.points].map(([x, { value }]) => ({ x, at: x, value }));
    const times = [...(this.times.get(line) ?? [])];
    const all = times.map(([x, at]) => ({ x, at, value: line.points.get(x)?.value ?? null }));
    const sample = sampleOf(all, most);
    this.left += all.length - sample.length;
    return sample;
  }

  /** Return the x values and the values of each line that its axes can show, before smoothing. */
  data() {
    const lines = this.lines.ordered;
    this.known = null;
    this.left = 0;
    this.spots = lines.map(([, line]) => this.spotsOf(line, MOST_TIMES / lines.length));
    const [x, y] = [this.scale("x"), this.scale("y")];
    const columns = columnsOf(
      this.spots,
      ({ at, value }) => (!x.log || at > 0) && (!y.log || value === null || value > 0),
    );
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
    if (!this.isLoaded) return null;
    const { labels, columns } = this.data();
    this.drawn = labels.join();
    const lines = this.lines.ordered.map(([, line]) => line);
    const looks = looksOf(lines);
    this.coloured = labels.map((label, at) => [label, looks[at].stroke]);
    const drawn = this.withSmoothing(columns);
    this.countOutside(columns);
    this.showCounts(labels.length);
    if (!columns[0].length) return null;
    const mark = this.isTimed ? 0 : Number(this.getAttribute("mark"));
    const raw = this.weight ? looks.map((look) => ({ ...look, width: 1, alpha: 0.3 })) : [];
    return {
      columns: drawn,
      series: [...raw, ...looks],
      across: this.isTimed ? TIME_AXIS : undefined,
      // With many lines, those far from the pointer fade. Lines without a point at its place have one near it.
      more: {
        ...(mark ? lineAt(mark, `epoch ${mark}`) : {}),
        cursor: {
          focus: { prox: looks.length > FEW && !this.weight ? 24 : -1 },
          hover: { skip: [null, undefined], prox: NEAR },
        },
      },
      legend: entriesOf(this.lines.ordered, looks, this.weight ? looks.length : 0),
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
    const finite = this.spots.reduce((sum, spots) => sum + spots.filter(({ value }) => value !== null).length, 0);
    const parts = [];
    if (finite > drawn) parts.push(`${grouped(finite - drawn)} at or below 0 have no place on a log axis`);
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
      const curve = /** @type {Line} */ (this.lines.byLabel.get(label));
      const distance = Math.abs(chart.valToPos(value, "y") - top);
      return [{ label, colour, value: text, place: this.placeOf(line, curve, place), trial: curve.trial, distance }];
    });
    if (!rows.length) return null;
    const sorted = [...rows].sort((a, b) => a.distance - b.distance);
    this.near = sorted[0].trial;
    const listed = rows.length > MOST_IN_TIP ? sorted.slice(0, MOST_IN_TIP) : rows;
    const hidden = rows.length - listed.length;
    const x = chart.data[0][at];
    const title = this.isTimed ? `${timeWords(x)} of training` : `${this.unit} ${setting(x, 6)}`;
    const isCommon = rows.every(({ place }) => place === rows[0].place);
    return {
      title: isCommon && rows[0].place ? `${title}, ${rows[0].place}` : title,
      rows: listed.map((row) => ({
        ...row,
        place: isCommon ? undefined : row.place,
        nearest: rows.length > 1 && row === sorted[0],
      })),
      foot: hidden ? `and ${hidden} more lines` : undefined,
    };
  }

  /**
   * Return the other coordinate of a drawn point: its epoch on an axis of times, else its time.
   * @param {number} line
   * @param {Line} curve
   * @param {number} place
   */
  placeOf(line, curve, place) {
    const at = this.measured[0][place];
    const spot = this.spots[line].find((each) => each.at === at);
    if (!spot) return "";
    if (this.isTimed) return `${this.unit} ${setting(spot.x, 6)}`;
    if (this.unit === "second") return ""; // its x is a time
    const seconds = this.times.get(curve)?.get(spot.x);
    return seconds === undefined ? "" : `after ${timeWords(seconds)}`;
  }

  /** @override */
  clicked() {
    if (this.near && this.pick) this.pick(this.near);
  }

  /** @param {number} lines */
  showCounts(lines) {
    const { shown, total } = this.lines;
    const points = `${grouped(shown - this.left)} of ${grouped(total)} points`;
    const hidden = this.lines.size > lines ? `, the newest ${lines} of ${this.lines.size} lines` : "";
    const outside = this.outside ? `; ${this.outside}` : "";
    const none = this.hasAttribute("final")
      ? "No points were recorded."
      : "No points yet; they appear as they are measured.";
    const from = this.isTimed ? "; each training starts at 0, pauses are left out" : "";
    this.note.textContent = total ? points + hidden + outside + from : none;
  }
}

customElements.define("ty-curves", Curves);
