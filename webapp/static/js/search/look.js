// The colours that charts take from the theme, and a scale on which better is always stronger.

/** @import { VisualMapComponentOption } from "echarts" */
/** @import { ColourScale, Direction, Range } from "../shared/charts/types.js" */
/** @import { Column, Look, Scene } from "./types.js" */
import { themeColour } from "../shared/charts/colours.js";
import { number } from "../shared/words.js";

const FAINT_TO_STRONG = {
  light: ["#d5e3f0", "#8dbbe0", "#3f8fca", "#0b5cad", "#052b57"],
  dark: ["#27405a", "#2f6c9c", "#3a9fd6", "#83d3f7", "#f0faff"],
};

/** @type {ReturnType<typeof colours> | null} */
let known = null;

/** Return the colours of the theme. They are kept, because the page is styled each time they are read. */
export function look() {
  const dark = document.documentElement.dataset.bsTheme === "dark";
  if (known?.dark !== dark) known = colours(dark);
  return known;
}

/** @param {boolean} dark */
function colours(dark) {
  return {
    dark,
    ink: themeColour("--tblr-body-color"),
    quiet: themeColour("--tblr-secondary"),
    line: themeColour("--ty-line"),
    surface: themeColour("--ty-surface"),
    scale: FAINT_TO_STRONG[dark ? "dark" : "light"],
    accent: themeColour("--ty-running"),
    second: themeColour("--ty-pruned"),
    tones: /** @type {Record<string, string>} */ (
      Object.fromEntries(
        ["completed", "failed", "running", "retrying", "stopped", "pruned", "queued"].map((tone) => [
          tone,
          themeColour(`--ty-${tone}`),
        ]),
      )
    ),
  };
}

/**
 * Return the scale from worse to better for numbers that grow from low to high.
 * @param {string[]} scale
 * @param {Direction} direction
 */
export const towards = (scale, direction) => (direction === "max" ? scale : [...scale].reverse());

/**
 * Return the range of the middle nine tenths of some values: one trial that diverged does not take all the colour.
 * @param {Iterable<number | null>} values
 * @returns {Range}
 */
export function middle(values) {
  const sorted = Float64Array.from([...values].filter((value) => value !== null).filter(Number.isFinite)).sort();
  if (!sorted.length) return [0, 1];
  const at = (/** @type {number} */ share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const [low, high] = sorted.length < 20 ? [sorted[0], sorted[sorted.length - 1]] : [at(0.05), at(0.95)];
  return low < high ? [low, high] : [low, low + (Math.abs(low) || 1)];
}

/**
 * Return the range of the values that colours show: as set by the person, or else of the values, with or without the
 * outliers.
 * @param {Pick<Scene, "scales" | "hidesOutliers">} scene
 * @param {ArrayLike<number>} values
 * @returns {Range}
 */
export function valueRange({ scales, hidesOutliers }, values) {
  const all = Array.from(values);
  const [least, most] = hidesOutliers ? middle(all) : [Math.min(...all), Math.max(...all)];
  const [low, high] = [scales.z.low ?? least, scales.z.high ?? most];
  return low < high ? [low, high] : [low, low + (Math.abs(low) || 1)];
}

/**
 * @param {number} value
 * @param {Range} range
 */
export const clamp = (value, [low, high]) => Math.min(Math.max(value, low), high);

/**
 * Return at most `count` entries of a list, evenly spaced.
 * @template T
 * @param {T[]} list
 * @param {number} count
 */
export function evenSample(list, count) {
  if (list.length <= count) return list;
  const step = list.length / count;
  return Array.from({ length: count }, (_, index) => list[Math.floor(index * step)]);
}

/**
 * Return the axis of a column.
 * @param {Look} colours
 * @param {Pick<Column, "label" | "numeric" | "log" | "categories" | "low" | "high" | "values">} column
 * @param {object} more options of this axis
 * @returns {{ type: "category", data: string[] } | { type: "value", scale: true } | { type: "log", logBase: number, axisLabel: object }}
 */
export function axis(colours, column, more = {}) {
  const { quiet, line } = colours;
  const shared = {
    name: column.label,
    nameLocation: "middle",
    nameGap: 30,
    nameTextStyle: { color: quiet, fontSize: 12 },
    axisLine: { lineStyle: { color: line } },
    axisTick: { lineStyle: { color: line } },
    axisLabel: { color: quiet, fontSize: 11, hideOverlap: true },
    splitLine: { lineStyle: { color: line } },
  };
  if (!column.numeric) return { ...shared, type: "category", data: column.categories ?? [], ...more };
  const ends = { min: column.low, max: column.high };
  if (column.log) {
    const { base, label } = logMarks(column);
    return { ...shared, type: "log", logBase: base, axisLabel: { ...shared.axisLabel, ...label }, ...ends, ...more };
  }
  return { ...shared, type: "value", scale: true, ...wholeMarks(column), ...ends, ...more };
}

/**
 * Keep the marks of an axis at whole numbers where each value is one: there is no layer 1.5.
 * @param {Pick<Column, "values">} column
 */
export const wholeMarks = ({ values }) =>
  values.every((value) => value === null || Number.isInteger(value)) ? { minInterval: 1 } : {};

const DECADES = 2; // below, powers of ten are too few marks
const MARKS = 5;

/**
 * Return the base of a logarithmic axis, the powers of which are its marks, and how they are written.
 * @param {Pick<Column, "values" | "low" | "high">} column
 */
export function logMarks({ values, low, high }) {
  let [least, most] = [low ?? Infinity, high ?? 0];
  for (const value of values) {
    if (value === null || !(value > 0)) continue;
    if (low === undefined && value < least) least = value;
    if (high === undefined && value > most) most = value;
  }
  const decades = Math.log10(most / least);
  if (!(decades > 0) || decades >= DECADES) return { base: 10, label: {} };
  return {
    base: 10 ** (decades / MARKS),
    label: { formatter: (/** @type {number} */ value) => number(value, 3) },
  };
}

/**
 * Return the place of the axes within a chart, with room for a scale of colours if there is one.
 * @param {Pick<Scene, "narrow" | "compact">} scene
 * @param {boolean} scale
 */
export const margins = ({ narrow, compact }, scale = true) => ({
  left: compact ? 52 : 64,
  right: narrow ? 16 : scale ? 110 : 32,
  top: 16,
  bottom: compact ? 40 : 48,
});

/**
 * Return how a chart shows numbers as colours: the option of the picture, with a scale beside it if there is room, and
 * otherwise the scale below it.
 * @param {Pick<Scene, "colours" | "narrow">} scene
 * @param {{ range: Range, direction: Direction, label: string, dimension: number, series?: number | number[] }} scale
 * @returns {{ visualMap: VisualMapComponentOption, scale: ColourScale | null }}
 */
export function colourScale({ colours, narrow }, { range, direction, label, dimension, series = 0 }) {
  const text = label.replace(" (mean)", "");
  const steps = towards(colours.scale, direction);
  /** @type {VisualMapComponentOption} */
  const visualMap = {
    show: !narrow,
    type: "continuous",
    min: range[0],
    max: range[1],
    dimension,
    seriesIndex: series,
    orient: "vertical",
    right: 0,
    top: "middle",
    itemHeight: 140,
    itemWidth: 10,
    precision: range.every(Number.isInteger) ? 0 : 4,
    calculable: false,
    text: [text, ""],
    textStyle: { color: colours.quiet, fontSize: 11, width: 90, overflow: "truncate" },
    inRange: { color: steps },
  };
  return { visualMap, scale: narrow ? { label: text, range, steps } : null };
}
