// What charts take from the theme: ink, lines, and a scale on which better is always stronger.
const FAINT_TO_STRONG = {
  light: ["#d5e3f0", "#8dbbe0", "#3f8fca", "#0b5cad", "#052b57"],
  dark: ["#27405a", "#2f6c9c", "#3a9fd6", "#83d3f7", "#f0faff"],
};

let known = { dark: null };

/** The colours of the theme; asking the page for them would have it styled first, so they are kept. */
export function look() {
  const dark = document.documentElement.dataset.bsTheme === "dark";
  if (known.dark !== dark) known = colours(dark);
  return known;
}

function colours(dark) {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    dark,
    ink: read("--tblr-body-color"),
    quiet: read("--tblr-secondary"),
    line: read("--ty-line"),
    surface: read("--ty-surface"),
    scale: FAINT_TO_STRONG[dark ? "dark" : "light"],
    accent: read("--ty-running"),
    second: read("--ty-pruned"),
    tones: Object.fromEntries(
      ["completed", "failed", "running", "retrying", "stopped", "pruned", "queued"].map((tone) => [
        tone,
        read(`--ty-${tone}`),
      ]),
    ),
  };
}

/** The scale from worse to better for numbers that grow from low to high. */
export const towards = (scale, direction) => (direction === "max" ? scale : [...scale].reverse());

/** The middle nine tenths of some values: one trial that diverged does not take all the colour. */
export function middle(values) {
  const sorted = Float64Array.from(values.filter(Number.isFinite)).sort();
  if (!sorted.length) return [0, 1];
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const [low, high] = sorted.length < 20 ? [sorted[0], sorted.at(-1)] : [at(0.05), at(0.95)];
  return low < high ? [low, high] : [low, low + (Math.abs(low) || 1)];
}

export const clamp = (value, [low, high]) => Math.min(Math.max(value, low), high);

/** Take at most `count` of a list, evenly. */
export function thin(list, count) {
  if (list.length <= count) return list;
  const step = list.length / count;
  return Array.from({ length: count }, (_, index) => list[Math.floor(index * step)]);
}

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
  if (!column.numeric) return { ...shared, type: "category", data: column.categories, ...more };
  return { ...shared, type: column.log ? "log" : "value", scale: true, ...more };
}

/** The scale of colours beside a chart. */
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
