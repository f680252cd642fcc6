// A metric over two hyperparameters, as means of cells.

import { grouped, number, setting } from "../../shared/words.js";
import { axis, clamp, colourScale, valueRange } from "../look.js";
/** @import { HeatmapSeriesOption } from "echarts" */
/** @import { Direction, Range } from "../../shared/charts/types.js" */
/** @import { Chart, Column } from "../types.js" */
import { numbersOf } from "../store.js";
import { extent, onPlane, PLANE } from "./plane.js";
import { needsHyperparameters, partition, seriesItems } from "./shared.js";

/** @typedef {{ column: number, row: number, mean: number, count: number }} Cell */

const MOST_CELLS = 12; // a side; a hyperparameter with fewer values has one for each

/**
 * Cut a column into cells: one for each value if there are few, else equal parts of its scale.
 * @param {Column} column
 * @param {number[]} found
 * @returns {{ labels: string[], of: (index: number) => number }}
 */
function cells(column, found) {
  const { categories } = column;
  const values = numbersOf(column);
  if (categories) return { labels: categories, of: (index) => values[index] };
  const seen = [...new Set(found.map((index) => values[index]))].sort((a, b) => a - b);
  if (seen.length <= MOST_CELLS) {
    const place = new Map(seen.map((value, at) => [value, at]));
    return { labels: seen.map((value) => setting(value)), of: (index) => Number(place.get(values[index])) };
  }
  const { low, high, to, from } = extent(column, found);
  const width = (high - low) / MOST_CELLS;
  const labels = Array.from(
    { length: MOST_CELLS },
    (_, at) => `${setting(from(low + at * width), 3)} – ${setting(from(low + (at + 1) * width), 3)}`,
  );
  return { labels, of: (index) => Math.min(MOST_CELLS - 1, Math.floor((to(values[index]) - low) / width)) };
}

/** @type {Chart} */
export const heat = {
  id: "heat",
  title: "Heat map",
  ...PLANE,
  missing: needsHyperparameters(2, 2),
  draw(scene) {
    const { colours, narrow, compact } = scene;
    const { x, y, metric, direction, found, note } = onPlane(scene);
    const [across, up] = [cells(x, found), cells(y, found)];
    const values = numbersOf(metric);
    /** @type {Map<number, [total: number, count: number]>} */
    const sums = new Map();
    for (const index of found) {
      const key = up.of(index) * across.labels.length + across.of(index);
      const sum = sums.get(key) ?? [0, 0];
      sum[0] += values[index];
      sum[1] += 1;
      sums.set(key, sum);
    }
    const filled = [...sums]
      .sort(([a], [b]) => a - b)
      .map(([key, [total, count]]) => ({
        column: key % across.labels.length,
        row: Math.floor(key / across.labels.length),
        mean: total / count,
        count,
      }));
    const range = valueRange(
      scene,
      filled.map(({ mean }) => mean),
    );
    const describe = (/** @type {Cell} */ { column, row, mean, count }) =>
      `${x.label} ${across.labels[column]}, ${y.label} ${up.labels[row]}: ${metric.label} ${number(mean)}, mean of ${count} trial${count === 1 ? "" : "s"}`;
    const labelled = filled.length <= 80 && !narrow;
    const lists = partition(filled, ({ mean }) => labelled && isStrong(mean, range, direction));
    /**
     * @param {Cell[]} list
     * @param {string} ink
     * @returns {HeatmapSeriesOption}
     */
    const cellsOf = (list, ink) => ({
      type: "heatmap",
      data: list.map(({ column, row, mean }) => [column, row, clamp(mean, range), mean]),
      label: {
        show: labelled,
        color: ink,
        formatter: ({ value }) => number(/** @type {number[]} */ (value)[3], 3),
        fontSize: 10,
      },
      itemStyle: { borderColor: colours.surface, borderWidth: 1 },
      emphasis: { itemStyle: { borderColor: colours.second, borderWidth: 2 } },
    });
    const shown = { range, direction, label: metric.label, dimension: 2, series: [0, 1] };
    const { visualMap, scale } = colourScale(scene, shown);
    return {
      scale,
      label: `Mean ${metric.label} of ${found.length} trials by ${x.label} and ${y.label}.`,
      note,
      foot: "The mean of the trials in each cell; empty cells have none.",
      items: () => seriesItems(filled, lists, (cell) => ({ text: describe(cell) })),
      table: () => ({
        head: [
          { label: x.label },
          { label: y.label },
          { label: `mean ${metric.label}`, num: true },
          { label: "trials", num: true },
        ],
        rows: filled.map(({ column, row, mean, count }) => [
          across.labels[column],
          up.labels[row],
          number(mean),
          grouped(count),
        ]),
      }),
      tip: ({ seriesIndex, dataIndex }) => {
        const { column, row, mean, count } = lists[seriesIndex][dataIndex];
        return {
          title: `${metric.label}: ${number(mean)}`,
          rows: [
            { label: x.label, value: across.labels[column] },
            { label: y.label, value: up.labels[row] },
          ],
          foot: `mean of ${count} trial${count === 1 ? "" : "s"}`,
        };
      },
      option: {
        grid: { left: 8, right: narrow ? 12 : 116, top: 12, bottom: 34, containLabel: true },
        xAxis: axis(
          colours,
          { ...x, numeric: false, categories: across.labels },
          { splitLine: { show: false }, nameGap: compact ? 26 : 34, nameTextStyle: { color: colours.quiet } },
        ),
        yAxis: axis(
          colours,
          { ...y, numeric: false, categories: up.labels },
          {
            splitLine: { show: false },
            name: narrow ? "" : y.label,
            nameLocation: "end",
            nameGap: 4,
            nameTextStyle: { color: colours.quiet, align: "left", padding: [0, 0, 0, 6] },
          },
        ),
        visualMap,
        series: [cellsOf(lists[0], colours.ink), cellsOf(lists[1], colours.surface)],
      },
    };
  },
};

/**
 * Return whether a cell is coloured so strongly that dark text on it could not be read.
 * @param {number} value
 * @param {Range} range
 * @param {Direction} direction
 */
function isStrong(value, [low, high], direction) {
  const share = (value - low) / (high - low);
  return (direction === "max" ? share : 1 - share) > 0.45;
}
