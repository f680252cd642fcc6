// A metric over two hyperparameters, interpolated between trials: bands of colour with the trials on top.

import { el } from "../../shared/dom.js";
import { grouped, number } from "../../shared/words.js";
import { axis, colourScale, evenSample, margins, towards, valueRange } from "../look.js";
/** @import { Direction, Range } from "../../shared/charts/types.js" */
/** @import { Chart, Column, Look } from "../types.js" */
/** @import { ScatterSeriesOption } from "echarts" */
/** @import { Extent } from "./plane.js" */
import { numbersOf } from "../store.js";
import { extent, onPlane, PLANE } from "./plane.js";
import { needsHyperparameters, partition, seriesItems, tableOf } from "./shared.js";
import { interpolate, valueAt } from "./surface.js";

/** @import { Surface } from "./surface.js" */

const SHARP = 150; // pixels a side of the picture of the surface
const BANDS = 9;
const DOTS = 200;
const DOTS_SMALL = 60; // of a chart in a grid

/** @type {Chart} */
export const contour = {
  id: "contour",
  title: "Contour",
  ...PLANE,
  missing: needsHyperparameters(2, 5),
  draw(scene) {
    const { store, colours, compact, view } = scene;
    const { x, y, metric, direction, found, note } = onPlane(scene);
    const [across, up] = [extent(x, found), extent(y, found)];
    const surface = interpolate(found, x, y, metric, across, up);
    const known = surface.values.filter((value) => !Number.isNaN(value));
    const range = valueRange(scene, known);
    const image = painted(surface, range, towards(colours.scale, direction));
    const dots = evenSample(found, compact ? DOTS_SMALL : DOTS);
    const best = bestOf(found, metric, direction);
    const columns = [x, y, metric];
    const ranked = [...new Set([...dots, best])].sort((a, b) => store.number[a] - store.number[b]);
    const [others, bests] = partition(ranked, (index) => index === best);
    const [xs, ys, values] = columns.map(numbersOf);
    const isSelected = (/** @type {number} */ index) => view.selected.has(store.number[index]);
    const lists = [[], ...partition(others, isSelected), bests];
    const dot = (/** @type {number} */ index) => [xs[index], ys[index], values[index]];
    const plain = { color: colours.surface, borderColor: colours.ink, borderWidth: 1 };
    const ringed = { color: colours.surface, borderColor: colours.second, borderWidth: 2.5 };
    /** @type {ScatterSeriesOption} */
    const scatter = {
      type: "scatter",
      progressive: 0,
      symbolSize: 6,
      emphasis: { itemStyle: { borderColor: colours.second, borderWidth: 2 } },
    };
    const { visualMap, scale } = colourScale(scene, { range, direction, label: metric.label, dimension: 2 });
    return {
      scale,
      label: `Contour of ${metric.label} over ${x.label} and ${y.label}; the best is trial ${store.number[best]}.`,
      note: `${note}${ranked.length < found.length ? `; ${grouped(ranked.length)} dots drawn, the best among them` : ""}`,
      foot: footOf(x, y, metric),
      items: () =>
        seriesItems(ranked, lists, (index) => ({
          trial: store.number[index],
          text: store.describeTrial(index, columns),
        })),
      table: () => tableOf(scene, found, columns),
      tip: ({ seriesIndex, dataIndex }) => store.tipOf(lists[seriesIndex][dataIndex], columns),
      option: {
        grid: margins(scene),
        xAxis: axis(colours, x, {
          ...edges(colours, across, x),
          nameGap: compact ? 24 : 30,
          splitLine: { show: false },
        }),
        yAxis: axis(colours, y, { ...edges(colours, up, y), nameGap: compact ? 38 : 46, splitLine: { show: false } }),
        visualMap,
        series: [
          {
            type: "custom",
            silent: true,
            progressive: 0,
            data: [[first(x, across), first(y, up), range[0]]],
            encode: { x: 0, y: 1 },
            renderItem: (_, api) => {
              const steps = [api.size?.([1, 1]) ?? 0].flat();
              const half = steps.map((width, dim) => ([x, y][dim].numeric ? 0 : width / 2)); // of a category
              const [left, bottom] = api.coord?.([first(x, across), first(y, up)]) ?? [];
              const [right, top] = api.coord?.([last(x, across), last(y, up)]) ?? [];
              return {
                type: "image",
                style: {
                  image,
                  x: left - half[0],
                  y: top - half[1],
                  width: right - left + 2 * half[0],
                  height: bottom - top + 2 * half[1],
                },
              };
            },
          },
          { ...scatter, data: lists[1].map(dot), itemStyle: plain },
          { ...scatter, data: lists[2].map(dot), itemStyle: ringed },
          {
            ...scatter,
            data: bests.map(dot),
            itemStyle: isSelected(best) ? ringed : plain,
            symbol: "diamond",
            symbolSize: 14,
          },
        ],
      },
    };
  },
};

/**
 * Return how the values between the trials were made.
 * @param {Column} x
 * @param {Column} y
 * @param {Column} metric
 */
function footOf(x, y, metric) {
  const between = `Between the trials ${metric.label} is interpolated by distance (Shepard 1968): far from any dot it is a guess.`;
  if (x.numeric && y.numeric) return between;
  if (x.numeric || y.numeric)
    return `${between} Each category is a panel of its own: nothing lies between two categories.`;
  return "Each cell has the mean of its trials: nothing lies between two categories. Cells without trials are empty.";
}

/**
 * @param {Look} colours
 * @param {Extent} extent
 * @param {Column} column
 */
const edges = ({ quiet }, { low, high, from }, column) =>
  column.numeric
    ? {
        min: from(low),
        max: from(high),
        axisLabel: {
          color: quiet,
          fontSize: 11,
          formatter: (/** @type {number} */ value) => number(value, 3),
          hideOverlap: true,
        },
      }
    : {};
/**
 * @param {Column} column
 * @param {Extent} extent
 */
const first = (column, { low, from }) => (column.numeric ? from(low) : 0);
/**
 * @param {Column} column
 * @param {Extent} extent
 */
const last = (column, { high, from }) => (column.numeric ? from(high) : (column.categories ?? []).length - 1);

/**
 * @param {number[]} found
 * @param {Column} column
 * @param {Direction} direction
 */
function bestOf(found, column, direction) {
  const values = numbersOf(column);
  const sign = direction === "max" ? 1 : -1;
  let best = found[0];
  for (const index of found) if (sign * (values[index] - values[best]) > 0) best = index;
  return best;
}

/**
 * Return a surface as one picture, in bands: the edges between colours are the contour lines.
 * @param {Surface} surface
 * @param {Range} range
 * @param {string[]} ramp
 */
export function painted(surface, [low, high], ramp) {
  const colours = Array.from({ length: BANDS }, (_, step) => mixed(ramp, step / (BANDS - 1)));
  const bands = new Uint32Array(Uint8Array.from(colours.flat()).buffer); // a pixel each
  const canvas = el("canvas", { width: SHARP, height: SHARP });
  const context = canvas.getContext("2d");
  if (!context) throw new TypeError("the browser draws no canvas");
  const image = context.createImageData(SHARP, SHARP);
  const pixels = new Uint32Array(image.data.buffer);
  for (let line = 0; line < SHARP; line++) {
    const v = (SHARP - line - 0.5) / SHARP; // pictures begin at the top
    for (let across = 0; across < SHARP; across++) {
      const share = (valueAt(surface, (across + 0.5) / SHARP, v) - low) / (high - low);
      if (Number.isNaN(share)) continue; // transparent
      pixels[line * SHARP + across] = bands[Math.min(BANDS - 1, Math.max(0, Math.floor(share * BANDS)))];
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Return a colour of the scale as red, green, blue and opacity.
 * @param {string[]} ramp
 * @param {number} share
 */
function mixed(ramp, share) {
  const at = share * (ramp.length - 1);
  const low = Math.min(Math.floor(at), ramp.length - 2);
  const part = (/** @type {string} */ colour, /** @type {number} */ offset) =>
    parseInt(colour.slice(offset, offset + 2), 16);
  return [
    ...[1, 3, 5].map((offset) =>
      Math.round(part(ramp[low], offset) + (at - low) * (part(ramp[low + 1], offset) - part(ramp[low], offset))),
    ),
    255,
  ];
}
