// Parallel coordinates: a line for each trial. Dragging along an axis filters the trials, here and in the table.

import { grouped } from "../../shared/words.js";
import { clamp, colourScale, evenSample, logMarks, middle, wholeMarks } from "../look.js";
/** @import { EChartsOption, EChartsType, ParallelSeriesOption } from "echarts" */
/** @import { Direction, Range } from "../../shared/charts/types.js" */
/** @import { Chart, Column, Condition, Look, Scene } from "../types.js" */
import { numbersOf } from "../store.js";
import { axisNames, LINE } from "./axis-names.js";
import { arranged, partsOf } from "./gaps.js";
import {
  control,
  directionOf,
  drawn,
  needsHyperparameters,
  partition,
  rankedAmong,
  scaled,
  scoredCount,
  seriesItems,
  tableOf,
  withinAxes,
} from "./shared.js";

/** @typedef {Exclude<NonNullable<EChartsOption["parallelAxis"]>, unknown[]>} AxisOption */

const FITTING = 180; // a third in a small chart
const OTHERS = 60;
const MARKS = 50; // parts of an axis whose ends differ in their last digit
const BETWEEN = 58; // pixels between two axes: less would print their marks over each other
const ABOVE = 24; // pixels above and below the names of the axes
const HAIR = 1; // pixels: wider lines are drawn as shapes, which takes eight times as long
const GAPS =
  "A gap means that the hyperparameter was not active in the trial; a value between two gaps has no line, but is in the table. ";
const PAUSE = 250; // ms after a drag until the fitting lines are drawn again

/** @type {Chart} */
export const parallel = {
  id: "parallel",
  title: "Parallel coordinates",
  wide: true,
  controls: [control.metric],
  missing: needsHyperparameters(1, 1),
  offer: ({ store, axes }) => ({
    scales: [{ axis: "y", label: store.column(axes.metric).label, log: true, range: true }],
    outliers: "hidden",
  }),
  draw(scene) {
    const { store, view, axes, scales, colours } = scene;
    const metric = scaled(store.column(axes.metric), scales.y);
    const values = numbersOf(metric);
    const direction = directionOf(scene, metric.key);
    const { all: scored } = drawn(scene, [metric]);
    const columns = arranged(store.of("hyperparameter"), metric, scored);
    const { kept: all, left } = withinAxes(scene, scored, [{ column: metric, direction }]);
    const found = all.filter(view.fits);
    const lines = chosen(scene, found, all, metric, direction);
    const ends = columns.map((column) => (column === metric ? endsOf(metric, all) : store.extent(column)));
    const range = middle(lines.map((index) => metric.values[index]));
    const { fits } = view;
    const [others, fitting] = partition(lines, fits);
    const lists = [others, ...partition(fitting, (index) => view.selected.has(store.number[index]))];
    // Of each line the parts between its gaps; a point alone is no line, but has the trial's place among the items.
    const parts = lists.map((list) =>
      list.flatMap((index) => partsOf(columns, index).map(([first, last]) => ({ index, first, last }))),
    );
    const hasGaps = parts.some((part, at) => part.length > lists[at].length);
    const line = (/** @type {{ index: number, first: number, last: number }} */ { index, first, last }) => [
      ...columns.map((column, at) => (at < first || at > last ? "-" : (column.values[index] ?? "-"))),
      clamp(values[index] ?? range[0], range),
    ];
    const opacity = lines.length > 300 ? 0.55 : 0.85;
    const styles = [
      { color: colours.line, opacity: 0.5, width: HAIR },
      { opacity, width: HAIR },
      { opacity, width: 3 },
    ];
    /** @type {ParallelSeriesOption} */
    const shared = {
      type: "parallel",
      smooth: false,
      progressive: 0,
      activeOpacity: 0.6,
      emphasis: { lineStyle: { width: 3, opacity: 1 } },
    };
    const drawnNote = lines.length < all.length ? `; ${grouped(lines.length)} lines drawn` : "";
    const { visualMap, scale } = colourScale(scene, {
      range,
      direction,
      label: metric.label,
      dimension: columns.length,
      series: [1, 2],
    });
    const right = scene.narrow ? 48 : 150;
    return {
      scale,
      label: `Parallel coordinates of ${found.length} trials by ${columns.length - 1} hyperparameters and ${metric.label}.`,
      note: scoredCount(found, all) + drawnNote + left,
      foot: `${hasGaps ? GAPS : ""}Drag along an axis to filter, here and in the table; click it to remove the filter. By keyboard, use the filter form below.`,
      tips: false,
      items: () =>
        seriesItems(
          fitting,
          parts.map((part) => part.map(({ index }) => index)),
          (index) => ({ trial: store.number[index], text: store.describeTrial(index, columns) }),
        ),
      table: () => tableOf(scene, found, columns),
      tip: ({ seriesIndex, dataIndex }) => store.tipOf(parts[seriesIndex][dataIndex].index, columns),
      option: {
        visualMap,
        parallel: { right, bottom: 28, axisExpandable: false },
        parallelAxis: columns.map((column, dim) => axisOf(column, dim, colours, scene.narrow, ends[dim])),
        series: styles.map((lineStyle, at) => ({
          ...shared,
          // ECharts counts a part that does not reach a filtered axis as outside of the filter, though its trial fits.
          inactiveOpacity: hasGaps && at > 0 ? shared.activeOpacity : 0.04,
          lineStyle,
          data: parts[at].map(line),
        })),
      },
      least: (columns.length - 1) * BETWEEN + right + 28,
      tipOfAxis: (axis) => ({ title: columns[axis].label, rows: [] }),
      fitted: (width) => {
        const labels = columns.map(({ label }) => label);
        const left = Math.min(Math.max(28, width * 0.07), 64); // half of the first name
        const names = axisNames(labels, { width, left, right });
        const lines = Math.max(...names.map((name) => name.split("\n").length));
        return { parallel: { left, top: ABOVE + lines * LINE }, parallelAxis: names.map((name) => ({ name })) };
      },
      prepare: (chart) => mark(chart, scene, columns),
      ready: (chart) => follow(chart, scene, columns),
    };
  },
};

/**
 * Return the trials to draw: the best of those that fit and an even sample of the rest.
 * @param {Scene} scene
 * @param {number[]} found
 * @param {number[]} all
 * @param {Column} metric
 * @param {Direction} direction
 */
function chosen({ store, compact, view: { fits } }, found, all, metric, direction) {
  const ranked = rankedAmong(store, found, metric, direction);
  const most = compact ? FITTING / 3 : FITTING;
  const fitting =
    ranked.length <= most
      ? ranked
      : [...ranked.slice(0, most / 3), ...evenSample(ranked.slice(most / 3), (most * 2) / 3)];
  const others =
    all.length === found.length
      ? []
      : evenSample(
          all.filter((index) => !fits(index)),
          compact ? OTHERS / 3 : OTHERS,
        );
  // The best are drawn last, on top of the others.
  return [...others, ...fitting.reverse()];
}

/**
 * Return the ends of the axis of the metric.
 * @param {Column} metric
 * @param {number[]} shown
 * @returns {Range}
 */
function endsOf({ values, low, high }, shown) {
  const numbers = shown.map((index) => Number(values[index]));
  if (!numbers.length) return [low ?? 0, high ?? 1];
  return [
    low ?? numbers.reduce((a, b) => Math.min(a, b), Infinity),
    high ?? numbers.reduce((a, b) => Math.max(a, b), -Infinity),
  ];
}

/**
 * Return how many significant digits the marks of an axis need to differ.
 * @param {Range} extent
 */
function digitsFor([low, high]) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  return high > low ? Math.ceil(Math.log10(size / (high - low)) + Math.log10(MARKS)) : 0;
}

/**
 * @param {Column} column
 * @param {number} dim
 * @param {Look} colours
 * @param {boolean} narrow
 * @param {Range} extent
 * @returns {AxisOption}
 */
function axisOf(column, dim, colours, narrow, extent) {
  const shared = {
    dim,
    nameTextStyle: { color: colours.ink, fontSize: 11, lineHeight: LINE },
    triggerEvent: true, // the pointer at a name shows all of it
    axisLine: { lineStyle: { color: colours.quiet } },
    axisTick: { lineStyle: { color: colours.quiet } },
    z: 5, // above the lines, with a halo
    axisLabel: {
      color: colours.ink,
      fontSize: 11,
      showMinLabel: true,
      showMaxLabel: true,
      hideOverlap: true,
      textBorderColor: colours.surface,
      textBorderWidth: 3,
    },
    areaSelectStyle: { width: 18, borderColor: colours.accent, color: colours.accent, opacity: 0.25 },
  };
  if (!column.numeric) return { ...shared, type: "category", data: column.categories };
  const [low, high] = extent;
  const digits = Math.max(narrow ? 2 : 3, column.log ? 0 : digitsFor(extent));
  const label = {
    ...shared.axisLabel,
    formatter: (/** @type {number} */ value) =>
      Number.isInteger(value) && Math.abs(value) < 1e5 ? String(value) : String(Number(value.toPrecision(digits))),
  };
  return {
    ...shared,
    axisLabel: label,
    splitNumber: narrow ? 2 : 5,
    type: column.log ? "log" : "value",
    ...(column.log ? { logBase: logMarks(column).base } : wholeMarks(column)),
    min: low,
    max: high,
    ...(low === high ? { min: low - 1, max: high + 1 } : {}),
  };
}

/**
 * Show the current filters as brushed parts of the axes; an action for each would draw the chart as often.
 * @param {EChartsType} chart
 * @param {Scene} scene
 * @param {Column[]} columns
 */
function mark(chart, { view, store }, columns) {
  for (const model of axesOf(chart, {})) {
    const column = columns[model.get("dim")];
    const condition = view.where.get(column.key);
    if (!condition) continue;
    const interval = condition.one
      ? around(condition.one.map((word) => column.categories?.indexOf(word) ?? -1))
      : within(store.extent(column), condition);
    if (interval) model.setActiveIntervals([interval]);
  }
}

/**
 * The model of an axis. ECharts has no public way to read a brush, or to set one without drawing.
 * @typedef {{ get: (name: "dim") => number, activeIntervals?: Range[], setActiveIntervals: (intervals: Range[]) => void }} AxisModel
 * @typedef {{ queryComponents: (query: object) => AxisModel[] }} ChartModel
 */

/**
 * @param {EChartsType} chart
 * @param {{ index?: number, id?: string }} which
 */
function axesOf(chart, which) {
  const inner = /** @type {{ getModel: () => ChartModel }} */ (/** @type {unknown} */ (chart));
  return inner.getModel().queryComponents({ mainType: "parallelAxis", ...which });
}

/**
 * Turn brushes into filters.
 * @param {EChartsType} chart
 * @param {Scene} scene
 * @param {Column[]} columns
 */
function follow(chart, { view, tile, again }, columns) {
  let timer = 0;
  chart.on("axisareaselected", (event) => {
    const { parallelAxisId: id, parallelAxisIndex: index } =
      /** @type {{ parallelAxisId?: string, parallelAxisIndex?: number }} */ (event);
    const [model] = axesOf(chart, { index, id });
    const column = columns[model.get("dim")];
    const [interval] = model.activeIntervals ?? [];
    tile.brushing = true;
    view.filter(column.key, interval ? condition(column, interval) : null);
    tile.brushing = false;
    clearTimeout(timer);
    timer = setTimeout(again, PAUSE);
  });
}

/**
 * @param {Column} column
 * @param {Range} interval
 * @returns {Condition | null}
 */
function condition(column, [from, to]) {
  if (!column.categories) return { low: Math.min(from, to), high: Math.max(from, to) };
  const one = column.categories.filter(
    (_, index) => index >= Math.min(from, to) - 0.5 && index <= Math.max(from, to) + 0.5,
  );
  return one.length ? { one } : null;
}

/**
 * @param {number[]} places
 * @returns {Range | null}
 */
const around = (places) => (places.some((place) => place < 0) ? null : [Math.min(...places), Math.max(...places)]);

/**
 * @param {Range} extent
 * @param {Condition} condition
 * @returns {Range}
 */
const within = ([least, most], { low = least, high = most }) => [Math.max(low, least), Math.min(high, most)];
