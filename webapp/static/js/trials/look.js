// The colours that charts take from the theme, and a scale on which better is always stronger.

/** @import { VisualMapComponentOption } from "echarts" */
/** @import { Column, Direction, Look, Range } from "./types.js" */
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
  const style = getComputedStyle(document.documentElement);
  const read = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    dark,
    ink: read("--tblr-body-color"),
    quiet: read("--tblr-secondary"),
    line: read("--ty-line"),
    surface: read("--ty-surface"),
    scale: FAINT_TO_STRONG[dark ? "dark" : "light"],
    accent: read("--ty-running"),
    second: read("--ty-pruned"),
    tones: /** @type {Record<string, string>} */ (
      Object.fromEntries(
        ["completed", "failed", "running", "retrying", "stopped", "pruned", "queued"].map((tone) => [
          tone,
          read(`--ty-${tone}`),
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
 * @param {Pick<Column, "label" | "numeric" | "log" | "categories">} column
 * @param {object} more options of this axis
 * @returns {{ type: "category", data: string[] } | { type: "value", scale: true } | { type: "log", scale: true }}
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
  if (column.log) return { ...shared, type: "log", scale: true, ...more };
  return { ...shared, type: "value", scale: true, ...more };
}

/**
 * Return the scale of colours beside a chart.
 * @param {Look} colours
 * @param {{ range: Range, direction: Direction, label: string, dimension: number, series?: number | number[] }} scale
 * @returns {VisualMapComponentOption}
 */
export function legend(colours, { range, direction, label, dimension, series = 0 }) {
  return {
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
    precision: 4,
    calculable: false,
    text: [label.replace(" (mean)", ""), ""],
    textStyle: { color: colours.quiet, fontSize: 11, width: 90, overflow: "truncate" },
    inRange: { color: towards(colours.scale, direction) },
  };
}
