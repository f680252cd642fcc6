// When each trial ran, on which slot of which worker: a bar for each attempt.

/** @import { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn, EChartsType } from "echarts" */
/** @import { Chart, Look, Scene } from "../types.js" */
import { address } from "../../shared/addresses.js";
import { settings } from "../../shared/charts/settings.js";
import { clock, duration, grouped, trials } from "../../shared/words.js";

const MOST = 400;
const REST = 400; // ms without another turn of the wheel
/**
 * The attempts of a search as columns: each list has an entry for each attempt.
 * @typedef {{
 *   trial: number[], attempt: number[], worker: number[], lane: number[], start: number[], end: number[],
 *   outcome: string[], resumed_from: (number | null)[], workers: string[],
 * }} Attempts
 */
/** @typedef {{ version: number, loading: boolean, attempts: Attempts | null, failed: boolean }} Cached */

/** @type {Map<number, Cached>} */
const known = new Map();
/** @type {Record<string, string>} */
const TONES = {
  completed: "completed",
  failed: "failed",
  lost: "retrying",
  killed: "stopped",
  stopped: "stopped",
  paused: "queued",
  pruned: "pruned",
  "": "running",
};

/** @type {Chart} */
export const timeline = {
  id: "timeline",
  title: "Timeline",
  wide: true,
  offer: () => ({ scales: [] }),
  missing(scene) {
    const { attempts, failed } = attemptsOf(scene);
    if (!attempts && !failed) return { title: "Loading …", hint: "The attempts are being loaded." };
    if (!attempts) return { title: "The timeline could not be loaded", hint: "Reload the page to try again." };
    if (!attempts.trial.length)
      return {
        title: "Needs a started trial",
        hint: "Each attempt at a trial appears here with its worker, as soon as a worker has a free slot.",
      };
    return null;
  },
  draw(scene) {
    const { store, view, colours, narrow, compact, scales, tile } = scene;
    const { low, high } = scales.x;
    const { attempts } = attemptsOf(scene);
    if (!attempts) throw new TypeError("a chart that misses something is not drawn");
    const { fits } = view;
    const fitting = attempts.trial
      .map((_, at) => at)
      .filter((at) => fits(store.place.get(attempts.trial[at]) ?? -1) || !view.where.size);
    const shown = fitting.slice(-MOST);
    /** @type {Map<string, [worker: number, lane: number]>} */
    const lanes = new Map(
      shown.map((at) => [`${attempts.worker[at]}.${attempts.lane[at]}`, [attempts.worker[at], attempts.lane[at]]]),
    );
    const rows = [...lanes.values()].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const place = new Map(rows.map(([worker, lane], index) => [`${worker}.${lane}`, index]));
    const labels = rows.map(([worker, lane]) => `${attempts.workers[worker]} · ${lane + 1}`);
    const outcome = (/** @type {number} */ at) => attempts.outcome[at] || "running";
    const describe = (/** @type {number} */ at) =>
      `Trial ${attempts.trial[at]}, attempt ${attempts.attempt[at]} on ${attempts.workers[attempts.worker[at]]}, lane ${attempts.lane[at] + 1}: ${outcome(at)} after ${duration(attempts.end[at] - attempts.start[at])}, from ${clock(attempts.start[at])} UTC${attempts.resumed_from[at] === null ? "" : `, resumed from step ${attempts.resumed_from[at]}`}`;
    const count = new Set(fitting.map((at) => attempts.trial[at])).size;
    const outcomes = [...new Set(shown.map(outcome))];
    const bars = outcomes.map((word) => shown.filter((at) => outcome(at) === word));
    const order = new Map(shown.map((at, index) => [at, index]));
    const items = () =>
      bars.flatMap((list, series) =>
        list.map((at, data) => ({ at, series, data, trial: attempts.trial[at], text: describe(at) })),
      );
    return {
      label: `Timeline of ${shown.length} attempts over ${rows.length} lanes.`,
      note: `${trials(count)}, ${grouped(fitting.length)} attempts${shown.length < fitting.length ? `; the latest ${grouped(shown.length)} drawn` : ""}`,
      foot: "Times in UTC. The wheel zooms, dragging moves.",
      ready: (chart) => keepZoom(chart, tile.id),
      height: Math.max(180, 90 + rows.length * 30),
      items: () => items().sort((a, b) => Number(order.get(a.at)) - Number(order.get(b.at))),
      table: () => ({
        head: [
          { label: "trial", num: true },
          { label: "attempt", num: true },
          { label: "worker" },
          { label: "lane", num: true },
          { label: "outcome" },
          { label: "from (UTC)" },
          { label: "took", num: true },
        ],
        rows: [...shown]
          .reverse()
          .map((at) => [
            attempts.trial[at],
            attempts.attempt[at],
            attempts.workers[attempts.worker[at]],
            attempts.lane[at] + 1,
            outcome(at),
            clock(attempts.start[at]),
            duration(attempts.end[at] - attempts.start[at]),
          ]),
      }),
      tip: ({ seriesIndex, dataIndex }) => {
        const at = bars[seriesIndex][dataIndex];
        const resumed = attempts.resumed_from[at];
        return {
          title: `Trial ${attempts.trial[at]}, attempt ${attempts.attempt[at]}`,
          rows: [
            { label: "outcome", value: outcome(at) },
            { label: "took", value: duration(attempts.end[at] - attempts.start[at]) },
            { label: "from (UTC)", value: clock(attempts.start[at]) },
            { label: "worker", value: `${attempts.workers[attempts.worker[at]]}, lane ${attempts.lane[at] + 1}` },
          ],
          foot: resumed === null ? "" : `resumed from step ${resumed}`,
        };
      },
      option: {
        legend: { top: 0, left: 0, textStyle: { color: colours.quiet }, itemWidth: 14, itemHeight: 10 },
        grid: { left: 8, right: 24, top: 32, bottom: 28, containLabel: true },
        xAxis: {
          type: "time",
          axisLabel: { color: colours.quiet, fontSize: 11, hideOverlap: true },
          axisLine: { lineStyle: { color: colours.line } },
          splitLine: { show: true, lineStyle: { color: colours.line } },
        },
        yAxis: {
          type: "category",
          data: labels,
          inverse: true,
          axisLabel: { color: colours.ink, fontSize: 11, width: narrow ? 80 : 160, overflow: "truncate" },
          axisTick: { show: false },
          axisLine: { lineStyle: { color: colours.line } },
        },
        useUTC: true,
        dataZoom: [
          {
            type: "inside",
            filterMode: "weakFilter",
            disabled: compact, // the wheel scrolls the page
            startValue: low === undefined ? undefined : low * 1000,
            endValue: high === undefined ? undefined : high * 1000,
          },
        ],
        series: outcomes.map((word, series) => ({
          name: word,
          type: "custom",
          progressive: 0,
          itemStyle: { color: colours.tones[TONES[word] ?? TONES[""]] ?? colours.accent },
          encode: { x: [1, 2], y: 0 },
          data: bars[series].map((at) => [
            Number(place.get(`${attempts.worker[at]}.${attempts.lane[at]}`)),
            attempts.start[at] * 1000,
            attempts.end[at] * 1000,
            attempts.trial[at],
          ]),
          renderItem: (_, api) => bar(api, colours),
        })),
      },
    };
  },
};

/**
 * Keep the zoom in the settings, in seconds, once it rests.
 * @param {EChartsType} chart
 * @param {string} id
 */
function keepZoom(chart, id) {
  let timer = 0;
  chart.on("datazoom", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const [{ startValue, endValue }] = /** @type {{ startValue: number, endValue: number }[]} */ (
        chart.getOption().dataZoom
      );
      settings.set(id, { xrange: `${Math.floor(startValue / 1000)}..${Math.ceil(endValue / 1000)}` });
    }, REST);
  });
}

/**
 * @param {CustomSeriesRenderItemAPI} api
 * @param {Look} colours
 * @returns {CustomSeriesRenderItemReturn}
 */
function bar(api, colours) {
  const [row, start, end] = [0, 1, 2].map((dimension) => api.value(dimension));
  const [left, middle] = api.coord?.([start, row]) ?? [];
  const [right] = api.coord?.([end, row]) ?? [];
  const [, step] = [api.size?.([0, 1]) ?? 0].flat();
  const height = Math.min(step * 0.7, 24);
  const width = Math.max(right - left - 1, 1.5);
  const text = width > 26 ? String(api.value(3)) : "";
  return {
    type: "rect",
    shape: { x: left, y: middle - height / 2, width, height, r: 2 },
    style: { fill: api.visual("color") },
    emphasis: { style: { stroke: colours.ink, lineWidth: 2 } },
    textContent: text ? { type: "text", style: { text, fill: colours.surface, fontSize: 10 } } : undefined,
    textConfig: { position: "inside" },
  };
}

/**
 * Return the attempts; they are requested again when trials have changed.
 * @param {Scene} scene
 */
function attemptsOf({ job, store, again }) {
  const cached = known.get(job) ?? { version: -1, loading: false, attempts: null, failed: false };
  known.set(job, cached);
  if (cached.version !== store.version && !cached.loading) {
    cached.loading = true;
    cached.version = store.version;
    fetch(address(`/api/v1/jobs/${job}/timeline`))
      .then((response) => (response.ok ? response.json() : null))
      .catch(() => null)
      .then((attempts) => {
        cached.attempts = attempts;
        cached.failed = attempts === null;
        cached.loading = false;
        again();
      });
  }
  return cached;
}
