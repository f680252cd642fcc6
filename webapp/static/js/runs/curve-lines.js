// The lines of a chart of learning curves, from the stored series and from live events. A point is identified by its line and
// x, so adding it twice changes nothing.

/** @import { LiveEvent } from "../shared/connection/live.js" */
/** @import { Line } from "./curve-looks.js" */
/** @import { MetricSeries } from "./curve-points.js" */
import { writeNames } from "../shared/names.js";
import { number } from "../shared/words.js";
import { measuredPoints } from "./curve-points.js";
import { timeWords, trainingTimes } from "./training-time.js";

const MAX_LINES = 40;

/**
 * The series that a chart shows; `title` labels a single line.
 * @typedef {{ job: number, names: string[], trial: string | null, only?: string[], title: string | null }} Wanted
 */

export class CurveLines {
  /** @type {Map<string, Line>} */
  byLabel = new Map();
  /** The unit of the x axis. */
  unit = "epoch";
  /** How many points there are, and how many of them were read. */
  total = 0;
  shown = 0;

  /** @param {Wanted} wanted */
  constructor(wanted) {
    this.wanted = wanted;
  }

  get size() {
    return this.byLabel.size;
  }

  /** The parameters of the request for the stored series. */
  get query() {
    const { names, trial, only } = this.wanted;
    const query = new URLSearchParams({ names: writeNames(names) });
    if (trial) query.set("trial", trial);
    else if (only) query.set("trials", only.join());
    else query.set("newest", String(MAX_LINES));
    return query;
  }

  /** @param {MetricSeries[]} stored */
  read(stored) {
    this.byLabel.clear();
    this.total = this.shown = 0;
    for (const series of stored) {
      const line = this.line(series.name, series.job, series.trial, series.execution);
      for (const [x, point] of measuredPoints(series)) line.points.set(x, point);
      this.unit = series.x;
      this.total += series.total_points;
      this.shown += series.points.length;
    }
  }

  /**
   * Add the points of events; return whether there were any.
   * @param {LiveEvent[]} events
   */
  add(events) {
    let changed = false;
    for (const event of events) {
      if (event.type !== "metric" || !this.wants(event.trial)) continue;
      for (const [name, x, value, time] of event.points) {
        if (!this.wanted.names.includes(name)) continue;
        const { points } = this.line(name, event.job, event.trial, event.execution);
        // A point that arrived while the others were loaded is among them.
        if (!points.has(x)) {
          this.total += 1;
          this.shown += 1;
        }
        points.set(x, { value, time, attempt: event.attempt });
        this.unit = event.x;
        changed = true;
      }
    }
    return changed;
  }

  /** @param {number} number */
  wants(number) {
    const { trial, only } = this.wanted;
    return trial ? String(number) === trial : !only || only.includes(String(number));
  }

  /**
   * Return the line of a series; a new one is empty.
   * @param {string} name
   * @param {number} job
   * @param {number | null} trial
   * @param {number | null} execution
   * @returns {Line}
   */
  line(name, job, trial, execution) {
    const { wanted } = this;
    let label = wanted.names.length > 1 ? name : "";
    if (trial && !wanted.trial) label += ` trial ${trial}`;
    if (execution) label += ` #${execution}`;
    if (!trial && job !== wanted.job) label += ` job ${job}`;
    label = label.trim() || wanted.title || name;
    const line = this.byLabel.get(label) ?? { name, job, trial: trial || null, execution, points: new Map() };
    this.byLabel.set(label, line);
    return line;
  }

  /** The lines to draw: the newest, those of training first; jobs without trials follow the trials. */
  get ordered() {
    const { names } = this.wanted;
    return [...this.byLabel]
      .slice(-MAX_LINES)
      .sort(
        ([, a], [, b]) =>
          names.indexOf(a.name) - names.indexOf(b.name) ||
          (a.trial ?? Infinity) - (b.trial ?? Infinity) ||
          a.job - b.job ||
          Number(a.execution) - Number(b.execution),
      );
  }

  /** The figures of each line, for a table. */
  get figures() {
    const times = trainingTimes([...this.byLabel.values()]);
    return [...this.byLabel].map(([label, line]) => {
      const points = [...line.points].sort(([a], [b]) => a - b);
      const values = points.flatMap(([, { value }]) => (value === null ? [] : [value]));
      return [
        label,
        points.length,
        ...[values[0], Math.min(...values), Math.max(...values), values.at(-1)].map((value) => number(value)),
        timeWords([...(times.get(line)?.values() ?? [])].at(-1) ?? 0),
      ];
    });
  }
}
