// Two metrics against each other; the front is the trials that no other beats in both.

import { axis, margins } from "../look.js";
/** @import { ScatterSeriesOption } from "echarts" */
/** @import { Direction, Option } from "../../shared/charts/types.js" */
/** @import { Chart, Scene } from "../types.js" */
import { numbersOf } from "../store.js";
import {
  axisOffer,
  directionOf,
  dotted,
  drawn,
  drawnCount,
  metrics,
  needsTrials,
  partition,
  scaled,
  seriesItems,
  tableOf,
  withinAxes,
} from "./shared.js";

/**
 * Return the second objective or, if there is one only, another metric, of the validation data if possible.
 * @param {Scene} scene
 */
function other({ store }) {
  const [, second] = store.objectives;
  if (second) return store.keyOf(second.metric);
  const [, ...rest] = store.of("metric");
  return (rest.find(({ label }) => label.startsWith("val_")) ?? rest[0])?.key;
}

/** @type {Option[]} */
const DIRECTIONS = [
  { value: "max", label: "higher is better" },
  { value: "min", label: "lower is better" },
];

/** @type {Chart} */
export const pareto = {
  id: "pareto",
  title: "Pareto front",
  controls: [
    { name: "x", label: "Across", options: metrics },
    { name: "xway", label: "where", options: () => DIRECTIONS, first: (scene) => directionOf(scene, scene.axes.x) },
    { name: "y", label: "Up", options: metrics, first: other },
    { name: "yway", label: "where", options: () => DIRECTIONS, first: (scene) => directionOf(scene, scene.axes.y) },
  ],
  offer: (scene) => ({
    scales: [...axisOffer(scene, "x", "x axis"), ...axisOffer(scene, "y", "y axis")],
    outliers: "hidden",
  }),
  missing(scene) {
    if (scene.store.of("metric").length < 2)
      return {
        title: "Needs two metrics",
        hint: "The trials report one metric so far. Add metrics to the experiment's training, or wait for the first completed trial.",
      };
    return needsTrials(1)(scene);
  },
  draw(scene) {
    const { store, axes, scales, colours, view } = scene;
    const [x, y] = [scaled(store.column(axes.x), scales.x), scaled(store.column(axes.y), scales.y)];
    const [xs, ys] = [numbersOf(x), numbersOf(y)];
    const [xDirection, yDirection] = [toDirection(axes.xway), toDirection(axes.yway)];
    const { found: fitting, all } = drawn(scene, [x, y]);
    const { kept: found, left } = withinAxes(scene, fitting, [
      { column: x, direction: xDirection },
      { column: y, direction: yDirection },
    ]);
    const front = frontOf(found, xs, ys, xDirection, yDirection);
    const onFront = new Set(front);
    const rest = found.filter((index) => !onFront.has(index));
    const shown = dotted(scene, rest, y, yDirection);
    const dot = (/** @type {number} */ index) => [xs[index], ys[index]];
    const ringed = { borderColor: colours.second, borderWidth: 2 };
    const lists = [front, ...partition(shown, (index) => view.selected.has(store.number[index]))];
    const items = () =>
      seriesItems([...front, ...shown], lists, (index) => ({
        trial: store.number[index],
        text: `${store.describeTrial(index, [x, y])}${onFront.has(index) ? ", on the front" : ""}`,
      }));
    /** @type {ScatterSeriesOption} */
    const scatter = {
      type: "scatter",
      symbolSize: shown.length > 300 ? 5 : 7,
      progressive: 0,
      itemStyle: { color: colours.accent, opacity: 0.55 },
    };
    return {
      label: `${y.label} against ${x.label} of ${found.length} trials; ${front.length} on the front.`,
      note: `${drawnCount([...front, ...shown], found, all)}; ${front.length} on the front${left}`,
      foot: "The line joins the trials that no other beats in both metrics. Values are means over the executions of a trial.",
      items,
      table: () => {
        const listed = tableOf(scene, [...front, ...rest], [x, y]);
        return {
          head: [...listed.head, { label: "front" }],
          rows: listed.rows.map((row, at) => [...row, at < front.length ? "yes" : "no"]),
        };
      },
      tip: ({ seriesIndex, dataIndex }) => {
        const index = lists[seriesIndex][dataIndex];
        return store.tipOf(index, [x, y], onFront.has(index) ? "on the front" : "");
      },
      option: {
        grid: margins(scene, false),
        xAxis: axis(colours, x, { nameGap: scene.compact ? 24 : 30 }),
        yAxis: axis(colours, y, { nameGap: scene.compact ? 38 : 46 }),
        series: [
          {
            type: "line",
            z: 3,
            data: front.map((index) =>
              view.selected.has(store.number[index]) ? { value: dot(index), itemStyle: ringed } : dot(index),
            ),
            symbol: "diamond",
            symbolSize: 11,
            itemStyle: { color: colours.second },
            lineStyle: { color: colours.second, width: 1.5 },
            step: false,
          },
          { ...scatter, data: lists[1].map(dot) },
          { ...scatter, data: lists[2].map(dot), itemStyle: { ...scatter.itemStyle, ...ringed } },
        ],
      },
    };
  },
};

/**
 * @param {string} value
 * @returns {Direction}
 */
const toDirection = (value) => (value === "max" ? "max" : "min");

/**
 * Return the indices that no other beats in both, in the order of x.
 * @param {number[]} found
 * @param {number[]} xs
 * @param {number[]} ys
 * @param {Direction} xDirection
 * @param {Direction} yDirection
 */
function frontOf(found, xs, ys, xDirection, yDirection) {
  const sign = (/** @type {Direction} */ direction) => (direction === "max" ? -1 : 1);
  const [sx, sy] = [sign(xDirection), sign(yDirection)];
  const sorted = [...found].sort((a, b) => sx * (xs[a] - xs[b]) || sy * (ys[a] - ys[b]));
  /** @type {number[]} */
  const front = [];
  let least = Infinity;
  for (const index of sorted) {
    if (sy * ys[index] < least) {
      least = sy * ys[index];
      front.push(index);
    }
  }
  return front.sort((a, b) => xs[a] - xs[b]);
}
