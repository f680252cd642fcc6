// A dot for each trial: the slice along one hyperparameter, and the rank over two.

import { axis, clamp, colourScale, margins } from "../look.js";
/** @import { ScatterSeriesOption } from "echarts" */
/** @import { Direction, Drawing, Range, Table } from "../../shared/charts/types.js" */
/** @import { Chart, Column, Scene } from "../types.js" */
import { numbersOf } from "../store.js";
import {
  axisOffer,
  control,
  directionOf,
  dotted,
  drawn,
  drawnCount,
  needsHyperparameters,
  partition,
  rankedAmong,
  scaled,
  seriesItems,
  tableOf,
  withinAxes,
} from "./shared.js";

/**
 * `found` of `all` trials fit, `shown` of them are drawn, in the colour of a third number.
 * @typedef {{
 *   found: number[], all: number[], shown: number[], x: Column, y: Column, columns: Column[],
 *   colour: (index: number) => number, range: Range, direction: Direction,
 *   legendLabel: string, label: string, left: string, foot: string, table?: () => Table,
 * }} Dots
 */

/**
 * Draw a dot for each trial, with a ring around those that are selected.
 * @param {Scene} scene
 * @param {Dots} drawing
 * @returns {Drawing}
 */
function dots(scene, drawing) {
  const { found, all, shown, x, y, colour, range, direction, legendLabel, columns, label, left, foot, table } = drawing;
  const { store, view, colours } = scene;
  const size = shown.length > 300 ? 6 : 9;
  const lists = partition(shown, (index) => view.selected.has(store.number[index]));
  const [xs, ys] = [numbersOf(x), numbersOf(y)];
  const dot = (/** @type {number} */ index) => [xs[index], ys[index], clamp(colour(index), range)];
  const emphasis = { itemStyle: { borderColor: colours.second, borderWidth: 2 } };
  /** @type {ScatterSeriesOption} */
  const shared = { type: "scatter", progressive: 0, emphasis };
  const { visualMap, scale } = colourScale(scene, {
    range,
    direction,
    label: legendLabel,
    dimension: 2,
    series: [0, 1],
  });
  return {
    scale,
    label,
    note: drawnCount(shown, found, all) + left,
    foot,
    items: () =>
      seriesItems(shown, lists, (index) => ({ trial: store.number[index], text: store.describeTrial(index, columns) })),
    table: table ?? (() => tableOf(scene, found, columns)),
    tip: ({ seriesIndex, dataIndex }) => store.tipOf(lists[seriesIndex][dataIndex], columns),
    option: {
      grid: margins(scene),
      xAxis: axis(colours, x, { nameGap: scene.compact ? 24 : 30 }),
      yAxis: axis(colours, y, { nameGap: scene.compact ? 38 : 46 }),
      visualMap,
      series: [
        {
          ...shared,
          data: lists[0].map(dot),
          symbolSize: size,
          itemStyle: { borderColor: colours.quiet, borderWidth: shown.length > 300 ? 0 : 0.5 },
        },
        { ...shared, data: lists[1].map(dot), symbolSize: size + 6, itemStyle: emphasis.itemStyle },
      ],
    },
  };
}

/** @type {Chart} */
export const slice = {
  id: "slice",
  title: "Slice",
  controls: [control.x, control.metric],
  missing: needsHyperparameters(1, 1),
  offer: (scene) => ({
    scales: [...axisOffer(scene, "x", "x axis"), { axis: "y", label: "y axis", log: true, range: true }],
    outliers: "hidden",
  }),
  draw(scene) {
    const { store, axes, scales } = scene;
    const [x, y] = [scaled(store.column(axes.x), scales.x), scaled(store.column(axes.metric), scales.y)];
    const direction = directionOf(scene, y.key);
    const { found: fitting, all } = drawn(scene, [x, y]);
    const { kept: found, left } = withinAxes(scene, fitting, [{ column: x }, { column: y, direction }]);
    const first = store.number[found[0]] ?? 0;
    return dots(scene, {
      found,
      all,
      left,
      shown: dotted(scene, found, y, direction),
      x,
      y,
      colour: (index) => store.number[index],
      range: [first, Math.max(store.number[found[found.length - 1]] ?? 1, first + 1)],
      direction: "max",
      legendLabel: "trial",
      columns: [x, y],
      label: `${y.label} of ${found.length} trials by ${x.label}.`,
      foot: "The stronger the colour of a dot, the later the trial.",
    });
  },
};

/** @type {Chart} */
export const rank = {
  id: "rank",
  title: "Rank",
  controls: [control.x, control.y, control.metric],
  missing: needsHyperparameters(2, 2),
  offer: (scene) => ({ scales: [...axisOffer(scene, "x", "x axis"), ...axisOffer(scene, "y", "y axis")] }),
  draw(scene) {
    const { store, axes, scales } = scene;
    const [x, y] = [scaled(store.column(axes.x), scales.x), scaled(store.column(axes.y), scales.y)];
    const metric = store.column(axes.metric);
    const { found: fitting, all } = drawn(scene, [x, y, metric]);
    const { kept: found, left } = withinAxes(scene, fitting, [{ column: x }, { column: y }]);
    const order = rankedAmong(store, found, metric, directionOf(scene, metric.key));
    const places = new Uint32Array(store.size);
    order.forEach((index, place) => (places[index] = place + 1));
    const ranked = () => ({
      head: [
        { label: "rank", num: true },
        { label: "trial", num: true },
        ...[metric, x, y].map(({ label, numeric }) => ({ label, num: numeric })),
      ],
      rows: order.map((index, place) => [
        place + 1,
        store.number[index],
        ...[metric, x, y].map((column) => store.text(column, index)),
      ]),
    });
    return dots(scene, {
      found,
      all,
      left,
      shown: dotted(scene, found, metric, directionOf(scene, metric.key)),
      x,
      y,
      colour: (index) => places[index],
      range: [1, Math.max(found.length, 2)],
      direction: "min",
      legendLabel: `rank, 1 is best`,
      columns: [x, y, metric],
      label: `Rank of ${found.length} trials by ${x.label} and ${y.label}.`,
      foot: `Colours show ranks, so that one diverged trial does not hide differences between the others. Ranked by ${metric.label}.`,
      table: ranked,
    });
  },
};
