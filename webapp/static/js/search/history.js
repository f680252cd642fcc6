// <ty-history job [key]>: the score of each trial and the best so far. Dragging filters the trials, here and in the table;
// a click selects one. With the chart in focus, arrows go from trial to trial.

import { address } from "../shared/addresses.js";
import { fenceOf, fitsScale, hidesOutliers } from "../shared/charts/axes.js";
import { Chart } from "../shared/charts/chart.js";
import { draggedRange } from "../shared/charts/chart-parts.js";
import { themeColour } from "../shared/charts/colours.js";
/** @import uPlot from "uplot" */
/** @import { AlignedData, Options, Series } from "uplot" */
/** @import { Fence, Scale } from "../shared/charts/axes.js" */
/** @import { TipText } from "../shared/charts/tip.js" */
/** @import { Drawing, Values } from "../shared/charts/chart.js" */
/** @import { ChangeKind, View } from "./view.js" */
import { go } from "../shared/connection/guard.js";
import { grouped, number, trials } from "../shared/words.js";
/** @import { Coloured } from "./history-paths.js" */
import { squares, stairs } from "./history-paths.js";
import { viewOf } from "./view.js";

const MANY = 1000;
const REACH = 24; // pixels from the pointer to a dot that it points at
const MOST_IN_TIP = 6; // hyperparameters

class History extends Chart {
  frame = 0;
  drawnMany = false;
  /** @type {number[]} */
  indices = [];
  /** Values that do not depend on the filters. @type {ReturnType<History["read"]> | null} */
  known = null;
  /** The place of the trial that the pointer is at. @type {number | null} */
  near = null;
  /** @type {View} */
  view;
  ignore = () => {};

  /** @override */
  begin() {
    this.view = viewOf(this.job);
    this.ignore = this.view.onChange((kind) => this.changed(kind));
    this.rebuild();
  }

  /** @override */
  end() {
    this.ignore();
    cancelAnimationFrame(this.frame);
    super.end();
  }

  /** @param {ChangeKind} kind */
  changed(kind) {
    if (!["data", "filter", "all", "selection"].includes(kind)) return;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.redraw());
  }

  redraw() {
    if (!this.stop) return;
    const columns = this.columns();
    if (this.chart && columns && this.isMany === this.drawnMany)
      this.chart.setData(/** @type {AlignedData} */ (columns));
    else this.rebuild();
  }

  get isMany() {
    return this.indices.length > MANY;
  }

  get direction() {
    return this.view.store.objective.direction;
  }

  /**
   * Return the numbers of the trials, the scores that fit the filters, the best so far, the scores that do not fit, and
   * the scores of selected trials; null while there are none.
   * @returns {Values[] | null}
   */
  columns() {
    const { store, selected, mask } = this.view;
    if (!store.ready) {
      this.note.textContent = store.failed
        ? "The trials could not be loaded; reload the page to try again."
        : "Loading the trials …";
      return null;
    }
    if (this.known?.version !== store.version) this.known = this.read();
    const { numbers, scores, bests } = this.known;
    const [fitting, others, ringed] = [0, 1, 2].map(() => /** @type {Values} */ (Array(scores.length).fill(null)));
    const scale = this.scale("y");
    let count = 0;
    for (let at = 0; at < scores.length; at++) {
      const fits = mask[this.indices[at]];
      count += fits;
      if (scale.log && scores[at] <= 0) continue;
      if (fits) fitting[at] = scores[at];
      else others[at] = scores[at];
      if (selected.size && selected.has(numbers[at])) ringed[at] = scores[at];
    }
    this.showCounts(count, this.indices.length);
    return numbers.length ? [numbers, fitting, scale.log ? bests.map(positive) : bests, others, ringed] : null;
  }

  read() {
    const { store } = this.view;
    this.indices = store.scored();
    const scores = this.indices.map((index) => Number(store.score[index]));
    let [best] = scores;
    const bests = scores.map((score) => {
      if (store.better(score, best)) best = score;
      return best;
    });
    const corners = bests.flatMap((value, at) =>
      at === 0 || at === bests.length - 1 || value !== bests[at - 1] ? [at] : [],
    );
    return {
      version: store.version,
      corners,
      fence: fenceOf(scores, this.direction),
      numbers: this.indices.map((index) => store.number[index]),
      scores,
      bests,
    };
  }

  /** The fence beyond which scores are not drawn; null if all are. @returns {Fence | null} */
  get fence() {
    return this.known && (!this.key || hidesOutliers(this.key, "hidden")) ? this.known.fence : null;
  }

  /**
   * @override
   * @returns {Drawing | null}
   */
  picture() {
    const columns = this.columns();
    if (!columns) return null;
    const many = this.isMany;
    this.drawnMany = many;
    const [fit, line, ring] = ["--ty-running", "--ty-line", "--ty-pruned"].map(themeColour);
    const rings = { paths: () => null, points: { show: true, size: 10, width: 2, fill: "transparent" }, stroke: ring };
    /**
     * @param {string} colour
     * @returns {Partial<Series>}
     */
    const dots = (colour) => ({
      paths: () => null,
      points: { show: !many, size: 6, width: 0, fill: colour },
      width: 0,
      stroke: colour,
      fill: many ? colour : undefined,
    });
    /** @type {Partial<Series>} */
    const steps = {
      paths: (chart, series) => stairs(chart, series, this.known?.corners ?? []),
      points: { show: false },
      stroke: ring,
    };
    const squared = /** @type {Coloured[]} */ ([
      [3, line],
      [1, fit],
    ]);
    return {
      columns,
      series: [dots(fit), steps, dots(line), rings],
      legend: [
        { label: "score", colour: fit, series: [1], dot: true },
        { label: "best so far", colour: ring, series: [2] },
      ],
      more: this.drawing(many ? squared : null),
    };
  }

  /**
   * Return the options to draw many dots, if there are many, and to point at one dot instead of a line.
   * @param {Coloured[] | null} squared series of many dots and their colours
   * @returns {Partial<Options>}
   */
  drawing(squared) {
    return {
      cursor: { y: false, points: { show: false }, focus: { prox: -1 }, drag: { x: true, y: false, setScale: false } },
      hooks: {
        setCursor: [(chart) => this.showTip(chart)],
        setSelect: [(chart) => this.dragged(chart)],
        drawSeries: [
          (chart, at) => {
            if (squared && at === 1) squares(chart, squared);
          },
        ],
      },
    };
  }

  /**
   * Return the range of scores to draw: a few outliers must not make all others look alike.
   * @override
   * @param {number | null} low
   * @param {number | null} high
   * @param {Scale} scale
   * @returns {[number | null, number | null]}
   */
  heights(low, high, scale) {
    if (low === null || high === null) return super.heights(low, high, scale);
    const { fence } = this;
    const least = fence && this.direction === "max" ? fence.at : low;
    const most = fence && this.direction === "min" ? fence.at : high;
    if (scale.log) return super.heights(least, most, scale);
    const edge = (most - least || Math.abs(most) || 1) / 20;
    return [scale.low ?? least - edge, scale.high ?? most + edge];
  }

  /**
   * Filter by the numbers of the trials across which the pointer was dragged.
   * @override
   * @param {uPlot} chart
   */
  dragged(chart) {
    const range = draggedRange(chart);
    if (!range) return;
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.view.filter("number", { low: Math.ceil(range[0]), high: Math.floor(range[1]) });
  }

  /**
   * @override
   * @param {uPlot} chart
   * @param {number} at
   * @returns {TipText | null}
   */
  textAt(chart, at) {
    this.near = this.nearestDot(chart, at);
    return this.near === null ? null : this.describe(this.near);
  }

  /**
   * Return the place of the dot nearest to the pointer; null if none is near.
   * @param {uPlot} chart
   * @param {number} at
   */
  nearestDot(chart, at) {
    const { left = 0, top = 0 } = chart.cursor;
    const [xs] = chart.data;
    /** @type {number | null} */
    let found = null;
    let least = REACH;
    for (const step of [-1, 1]) {
      for (let place = step < 0 ? at : at + 1; place >= 0 && place < xs.length; place += step) {
        const across = Math.abs(chart.valToPos(xs[place], "x") - left);
        if (across > REACH) break;
        const score = chart.data[1][place] ?? chart.data[3][place];
        if (score === null || score === undefined) continue;
        const distance = Math.hypot(across, chart.valToPos(score, "y") - top);
        if (distance < least) [least, found] = [distance, place];
      }
    }
    return found;
  }

  /** @param {number} place */
  describe(place) {
    const { store, selected, mask } = this.view;
    const index = this.indices[place];
    const trial = store.number[index];
    const hyperparameters = store.of("hyperparameter");
    const shown = [store.column("score"), ...hyperparameters.slice(0, MOST_IN_TIP)];
    const more = hyperparameters.length - MOST_IN_TIP;
    const states = [
      selected.has(trial) ? "selected" : "",
      mask[index] ? "" : "does not fit the filters",
      more > 0 ? `${more} more hyperparameters` : "",
    ];
    return {
      title: `Trial ${trial}`,
      rows: [
        ...shown.map((column) => ({ label: column.label, value: store.textWithSpread(column, index) })),
        { label: "best so far", value: number(this.known?.bests[place]) },
      ],
      foot: states.filter(Boolean).join(", "),
    };
  }

  /** @override */
  clicked() {
    if (this.near !== null) this.view.toggleSelected(this.view.store.number[this.indices[this.near]]);
  }

  /** @override */
  get places() {
    return this.indices.length;
  }

  /**
   * @override
   * @param {KeyboardEvent} event
   */
  press(event) {
    const trial = this.at === undefined ? undefined : this.view.store.number[this.indices[this.at]];
    if (event.key === "x" && trial) this.view.toggleSelected(trial);
    else if (event.key === "Enter" && trial) go(address(`/jobs/${this.job}/trials/${trial}`));
    else return super.press(event);
    return true;
  }

  /**
   * @override
   * @param {number} at
   */
  go(at) {
    if (!this.chart) return;
    const { store } = this.view;
    const index = this.indices[at];
    const score = Number(store.score[index]);
    const [left, top] = [this.chart.valToPos(store.number[index], "x"), this.chart.valToPos(score, "y")];
    this.chart.setCursor({ left, top });
    this.note.textContent = `Trial ${store.number[index]}: ${number(score)} (x selects it, Enter opens it)`;
  }

  /**
   * @param {number} count
   * @param {number} all
   */
  showCounts(count, all) {
    const { store } = this.view;
    const { fence } = this;
    const words = !all
      ? "No trial has been completed yet."
      : count === all
        ? trials(count)
        : `${trials(count)} of ${grouped(all)}`;
    const outside = fence
      ? `; ${grouped(fence.beyond)} ${store.better(1, 0) ? "below" : "above"} ${number(fence.at)} not drawn`
      : "";
    const { log } = this.scale("y");
    const low = log ? (this.known?.scores ?? []).filter((score) => !fitsScale(score, { log })).length : 0;
    this.note.textContent = `${words}${outside}${low ? `; ${grouped(low)} at or below 0 have no place on a log axis` : ""}`;
    this.setAttribute("aria-label", `History: ${store.objective.metric} of ${words} Use the arrow keys.`);
  }
}

/** @param {number} value */
const positive = (value) => (value > 0 ? value : null);

customElements.define("ty-history", History);
