// A metric over two hyperparameters: as means of cells (heat map), and smoothed between trials (contour).
import { behind, control, directionOf, drawn, needsHyperparameters } from "./shared.js";
import { axis, clamp, legend, middle, thin, towards } from "../look.js";
import { tip } from "../echart.js";
import { counted, number } from "../words.js";

const MOST_CELLS = 12; // a side; a hyperparameter with fewer values has one for each
const FINE = 30;
const MOST_KNOTS = 256;
const BANDS = 9;
const DOTS = 200;

/** Where the values of a column lie, in its own scale. */
function extent({ values, log, categories }, found) {
  if (categories) return { low: -0.5, high: categories.length - 0.5, to: (value) => value, from: (value) => value };
  let [low, high] = [Infinity, -Infinity];
  const to = log ? Math.log10 : (value) => value;
  for (const index of found) {
    const at = to(values[index]);
    if (at < low) low = at;
    if (at > high) high = at;
  }
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return { low, high, to, from: log ? (value) => 10 ** value : (value) => value };
}

/** Cut a column into cells: one a value where there are few, else equal parts of its scale. */
function cells(column, found) {
  const { values, categories, numeric } = column;
  if (!numeric) return { labels: categories, of: (index) => values[index] };
  const seen = [...new Set(found.map((index) => values[index]))].sort((a, b) => a - b);
  if (seen.length <= MOST_CELLS) {
    const place = new Map(seen.map((value, at) => [value, at]));
    return { labels: seen.map((value) => number(value)), of: (index) => place.get(values[index]) };
  }
  const { low, high, to, from } = extent(column, found);
  const width = (high - low) / MOST_CELLS;
  const labels = Array.from({ length: MOST_CELLS }, (_, at) => `${number(from(low + at * width), 3)} – ${number(from(low + (at + 1) * width), 3)}`);
  return { labels, of: (index) => Math.min(MOST_CELLS - 1, Math.floor((to(values[index]) - low) / width)) };
}

export const heat = {
  id: "heat",
  title: "Heat map",
  controls: [control.x, control.y, control.metric],
  missing: needsHyperparameters(2, 2),
  draw(scene) {
    const { store, axes, colours, narrow } = scene;
    const [x, y, metric] = [axes.x, axes.y, axes.metric].map((key) => store.columns.get(key));
    const { found, all } = drawn(scene, [x, y, metric]);
    const [across, up] = [cells(x, found), cells(y, found)];
    const sums = new Map();
    for (const index of found) {
      const key = up.of(index) * across.labels.length + across.of(index);
      const sum = sums.get(key) ?? [0, 0];
      sum[0] += metric.values[index];
      sum[1] += 1;
      sums.set(key, sum);
    }
    const filled = [...sums].sort(([a], [b]) => a - b).map(([key, [total, count]]) => ({ column: key % across.labels.length, row: Math.floor(key / across.labels.length), mean: total / count, count }));
    const range = middle(filled.map(({ mean }) => mean));
    const tell = ({ column, row, mean, count }) => `${x.label} ${across.labels[column]}, ${y.label} ${up.labels[row]}: ${metric.label} ${number(mean)}, mean of ${count} trial${count === 1 ? "" : "s"}`;
    const way = directionOf(scene, metric.key);
    const labelled = filled.length <= 80 && !narrow;
    return {
      label: `Mean ${metric.label} of ${found.length} trials by ${x.label} and ${y.label}.`,
      note: behind(found, all),
      foot: "The mean of the trials in each cell; empty cells have none.",
      items: filled.map((cell, data) => ({ series: 0, data, text: tell(cell) })),
      table: () => ({
        head: [{ label: x.label }, { label: y.label }, { label: `mean ${metric.label}`, num: true }, { label: "trials", num: true }],
        rows: filled.map(({ column, row, mean, count }) => [across.labels[column], up.labels[row], number(mean), counted(count)]),
      }),
      option: {
        tooltip: tip(colours, ({ dataIndex }) => tell(filled[dataIndex])),
        grid: { left: 8, right: narrow ? 12 : 116, top: 12, bottom: 34, containLabel: true },
        xAxis: axis(colours, { ...x, numeric: false, categories: across.labels }, { splitLine: { show: false }, nameGap: 34, nameTextStyle: { color: colours.quiet } }),
        yAxis: axis(colours, { ...y, numeric: false, categories: up.labels }, { splitLine: { show: false }, name: narrow ? "" : y.label, nameLocation: "end", nameGap: 4, nameTextStyle: { color: colours.quiet, align: "left", padding: [0, 0, 0, 6] } }),
        visualMap: { ...legend(colours, { range, direction: directionOf(scene, metric.key), label: metric.label, dimension: 2 }), show: !narrow },
        series: [{
          type: "heatmap",
          data: filled.map(({ column, row, mean }) => ({ value: [column, row, clamp(mean, range), mean], label: { color: isStrong(mean, range, way) ? colours.surface : colours.ink } })),
          label: { show: labelled, formatter: ({ value }) => number(value[3], 3), fontSize: 10 },
          itemStyle: { borderColor: colours.surface, borderWidth: 1 },
          emphasis: { itemStyle: { borderColor: colours.second, borderWidth: 2 } },
        }],
      },
    };
  },
};

/** Whether a cell is so strongly coloured that ink on it would not be read. */
function isStrong(value, [low, high], direction) {
  const share = (value - low) / (high - low);
  return (direction === "max" ? share : 1 - share) > 0.45;
}

export const contour = {
  id: "contour",
  title: "Contour",
  controls: [control.x, control.y, control.metric],
  missing: needsHyperparameters(2, 5),
  draw(scene) {
    const { store, axes, colours, narrow, view } = scene;
    const [x, y, metric] = [axes.x, axes.y, axes.metric].map((key) => store.columns.get(key));
    const { found, all } = drawn(scene, [x, y, metric]);
    const [across, up] = [extent(x, found), extent(y, found)];
    const direction = directionOf(scene, metric.key);
    const surface = smooth(found, x, y, metric, across, up);
    const range = middle(surface.map(([, , value]) => value));
    const ramp = towards(colours.scale, direction);
    const dots = thin(found, DOTS);
    const fit = new Set(found);
    const best = store.ranked(metric, direction).find((index) => fit.has(index));
    const columns = [x, y, metric];
    const [width, height] = [(across.high - across.low) / FINE, (up.high - up.low) / FINE];
    const ranked = [...dots].sort((a, b) => store.number[a] - store.number[b]);
    return {
      label: `Contour of ${metric.label} over ${x.label} and ${y.label}; the best is trial ${store.number[best]}.`,
      note: `${behind(found, all)}${dots.length < found.length ? `; ${counted(dots.length)} dots drawn` : ""}`,
      foot: `Between the trials ${metric.label} is interpolated by distance (Shepard 1968): what it shows far from any dot is a guess.`,
      items: ranked.map((index, data) => ({ series: 1, data, trial: store.number[index], text: store.tell(index, columns) })),
      table: () => ({
        head: [{ label: "trial", num: true }, ...columns.map(({ label, numeric }) => ({ label, num: numeric }))],
        rows: found.map((index) => [store.number[index], ...columns.map((column) => store.text(column, index))]),
      }),
      option: {
        tooltip: tip(colours, ({ seriesIndex, dataIndex }) => (seriesIndex === 1 ? store.tell(ranked[dataIndex], columns).replaceAll(", ", "\n") : `${metric.label} about ${number(surface[dataIndex][2])}`)),
        grid: { left: 64, right: narrow ? 16 : 110, top: 16, bottom: 48 },
        xAxis: axis(colours, x, { ...edges(across, x), splitLine: { show: false } }),
        yAxis: axis(colours, y, { ...edges(up, y), nameGap: 46, splitLine: { show: false } }),
        visualMap: { ...legend(colours, { range, direction, label: metric.label, dimension: 2 }), show: !narrow },
        series: [
          {
            type: "custom",
            silent: true,
            progressive: 0,
            data: surface.map(([column, row, value]) => [column, row, clamp(value, range)]),
            encode: { x: 0, y: 1 },
            renderItem: (_, api) => {
              const at = (column, row) => api.coord([place(across, x, across.low + column * width), place(up, y, up.low + row * height)]);
              const [left, bottom] = at(api.value(0), api.value(1));
              const [right, top] = at(api.value(0) + 1, api.value(1) + 1);
              const share = (api.value(2) - range[0]) / (range[1] - range[0]);
              return { type: "rect", shape: { x: left, y: top, width: right - left + 0.6, height: bottom - top + 0.6 }, style: { fill: band(ramp, share) } };
            },
          },
          { type: "scatter", progressive: 0, symbolSize: 6, data: ranked.map((index) => dot(store, view, colours, index, x, y, metric, best)), emphasis: { itemStyle: { borderColor: colours.second, borderWidth: 2 } } },
        ],
      },
    };
  },
};

function dot(store, view, colours, index, x, y, metric, best) {
  const picked = view.picked.has(store.number[index]);
  const style = { color: colours.surface, borderColor: picked ? colours.second : colours.ink, borderWidth: picked ? 2.5 : 1 };
  return { value: [x.values[index], y.values[index], metric.values[index]], itemStyle: style, ...(index === best ? { symbol: "diamond", symbolSize: 14 } : {}) };
}

const edges = ({ low, high, from }, column) => (column.numeric ? { min: from(low), max: from(high), axisLabel: { formatter: (value) => number(value, 3), hideOverlap: true } } : {});
const place = ({ from }, column, value) => (column.numeric ? from(value) : value);

/** A colour of the scale, in steps: where one band meets the next runs a contour line. */
function band(ramp, share) {
  const step = Math.min(BANDS - 1, Math.max(0, Math.floor(share * BANDS))) / (BANDS - 1);
  const at = step * (ramp.length - 1);
  const low = Math.floor(at);
  const high = Math.min(low + 1, ramp.length - 1);
  const part = (colour, offset) => parseInt(colour.slice(offset, offset + 2), 16);
  const mixed = [1, 3, 5].map((offset) => Math.round(part(ramp[low], offset) + (at - low) * (part(ramp[high], offset) - part(ramp[low], offset))));
  return `rgb(${mixed.join(",")})`;
}

/** Interpolate by inverse squared distance from knots: the means of a grid of cells that hold trials. */
function smooth(found, x, y, metric, across, up) {
  const side = Math.round(Math.sqrt(MOST_KNOTS));
  const sums = new Map();
  for (const index of found) {
    const u = (across.to(x.values[index]) - across.low) / (across.high - across.low);
    const v = (up.to(y.values[index]) - up.low) / (up.high - up.low);
    const key = Math.min(side - 1, Math.floor(u * side)) * side + Math.min(side - 1, Math.floor(v * side));
    const sum = sums.get(key) ?? [0, 0, 0, 0];
    sum[0] += u;
    sum[1] += v;
    sum[2] += metric.values[index];
    sum[3] += 1;
    sums.set(key, sum);
  }
  const knots = [...sums.values()].map(([u, v, total, count]) => [u / count, v / count, total / count, Math.sqrt(count)]);
  const surface = [];
  for (let column = 0; column < FINE; column++) {
    for (let row = 0; row < FINE; row++) {
      let [total, weights] = [0, 0];
      for (const [u, v, value, count] of knots) {
        const du = (column + 0.5) / FINE - u;
        const dv = (row + 0.5) / FINE - v;
        const weight = count / (du * du + dv * dv + 4e-3);
        total += weight * value;
        weights += weight;
      }
      surface.push([column, row, total / weights]);
    }
  }
  return surface;
}
