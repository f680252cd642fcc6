// How much each hyperparameter matters, as the server computes it by PED-ANOVA.

/** @import { Chart, Scene } from "../types.js" */
import { address } from "../../shared/addresses.js";
import { number, trials } from "../../shared/words.js";

const PAUSE = 1500; // ms
const RARE = 0.05; // a difference that chance gives less often counts as one
const UNREACHABLE = "The server did not answer; reload the page to try again.";

/**
 * @typedef {{
 *   verdict: "higher" | "lower" | "choice" | "unclear", correlation: number | null, best: (string | number | boolean)[],
 * }} Influence
 */
/** @typedef {{ name: string, alone: number, chance: number, influence: Influence }} Importance */
/**
 * The server's report on the importance of a search's hyperparameters.
 * @typedef {{
 *   state: "fresh" | "computing" | "stale" | "missing" | "too_few", error?: string, objective: string, source: string,
 *   needs: number, completed: number, pruned: number, over: boolean, trials: number,
 *   result: { importances: Importance[], used: number } | null,
 * }} Report
 */
/** @typedef {{ version: number, loading: boolean, report: Report | null, failed: boolean }} Cached */

/** @type {Map<number, Cached>} */
const known = new Map();

/** @type {Chart} */
export const importance = {
  id: "importance",
  title: "Importance",
  controls: [],
  missing(scene) {
    const { report, failed } = reportOf(scene);
    if (failed) return { title: "No importance for these trials", hint: UNREACHABLE };
    if (!report) return { title: "Loading …", hint: "The importance of each hyperparameter is being loaded." };
    if (report.state === "too_few") return { title: `Needs ${report.needs} completed trials`, hint: tooFew(report) };
    if (report.result)
      return report.result.importances.every(({ chance }) => chance > RARE)
        ? { title: "No share is beyond chance", hint: byChanceAlone(report) }
        : null;
    if (report.error && report.state === "fresh")
      return { title: "No importance for these trials", hint: report.error };
    return {
      title: "Computing …",
      hint: `The best of ${trials(report.completed)} are compared with all; this takes some seconds.`,
    };
  },
  draw(scene) {
    const { colours, narrow } = scene;
    const { report } = reportOf(scene);
    if (!report?.result) throw new TypeError("a chart that misses something is not drawn");
    const { importances, used } = report.result;
    const entries = [...importances].sort((a, b) => a.alone - b.alone);
    const describe = (/** @type {Importance} */ entry) =>
      `${entry.name}: ${percent(entry.alone)}${byChance(entry)}; ${tendency(entry.influence)}`;
    const old =
      report.trials < report.completed
        ? `; ${trials(report.completed - report.trials)} since${report.state === "computing" ? ", being computed again" : ""}`
        : "";
    return {
      label: `Importance of ${entries.length} hyperparameters for ${report.objective}.`,
      note: `from ${trials(report.trials)}${used < report.trials ? `, ${used} of them sampled at random` : ""}${old}`,
      foot: `How much the values of the best trials differ from those of all trials. The shares add up to 100 %, even if no hyperparameter matters, and leave interactions out. Pale bars: as many trials drawn at random often differ as much. Method: ${report.source}. All completed trials count, whatever the filters.`,
      height: Math.max(160, 60 + entries.length * 34),
      items: () =>
        [...entries].reverse().map((entry) => ({ series: 0, data: entries.indexOf(entry), text: describe(entry) })),
      table: () => ({
        head: [
          { label: "hyperparameter" },
          { label: "importance", num: true },
          { label: "tendency" },
          { label: "rank correlation", num: true },
        ],
        rows: importances.map((entry) => [
          entry.name,
          `${percent(entry.alone)}${byChance(entry)}`,
          tendency(entry.influence),
          number(entry.influence.correlation, 2),
        ]),
      }),
      tip: ({ dataIndex }) => {
        const entry = entries[dataIndex];
        return {
          title: entry.name,
          rows: [{ label: "importance", value: `${percent(entry.alone)}${byChance(entry)}` }],
          foot: tendency(entry.influence),
        };
      },
      option: {
        grid: { left: 8, right: narrow ? 48 : 80, top: 8, bottom: 28, containLabel: true },
        xAxis: {
          type: "value",
          min: 0,
          max: 1,
          axisLabel: {
            color: colours.quiet,
            formatter: (/** @type {number} */ value) => `${Math.round(value * 100)} %`,
          },
          splitLine: { lineStyle: { color: colours.line } },
        },
        yAxis: {
          type: "category",
          data: entries.map(({ name }) => name),
          axisLabel: { color: colours.ink },
          axisLine: { lineStyle: { color: colours.line } },
          axisTick: { show: false },
        },
        series: [
          {
            type: "bar",
            data: entries.map(({ alone, chance }) => ({
              value: alone,
              itemStyle: { opacity: chance > RARE ? 0.35 : 1 },
            })),
            barMaxWidth: 20,
            itemStyle: { color: colours.accent },
            label: {
              show: true,
              position: "right",
              color: colours.ink,
              opacity: 1, // it has that of its bar otherwise
              formatter: ({ value }) => percent(Number(value)),
            },
          },
        ],
      },
    };
  },
};

/**
 * Return why there are no bars: their shares would add up to 100 % though nothing was found.
 * @param {Report} report
 */
const byChanceAlone = ({ trials: count, objective }) =>
  `The best of ${trials(count)} differ from all in no hyperparameter by more than as many trials drawn at random often do: ` +
  `within the ranges of this search, none is known to change ${objective}.`;

/**
 * Return words for a share that chance often gives; nothing for another.
 * @param {Importance} entry
 */
function byChance({ chance }) {
  return chance > RARE ? " (may be chance)" : "";
}

/**
 * Return why there is no importance yet, and how to get it.
 * @param {Report} report
 */
function tooFew({ completed, pruned, over }) {
  const there = over
    ? `The search ended with ${completed || "none"} completed`
    : `There ${completed === 1 ? "is" : "are"} ${completed || "none"} so far`;
  const shorter = pruned
    ? ` ${trials(pruned)} ended early by pruning and ${pruned === 1 ? "is" : "are"} not used, because a score after fewer epochs cannot be compared with a score after all of them.`
    : "";
  const help = over ? ` Start another search with more trials${pruned ? " or without pruning" : ""}.` : "";
  return `${there}.${shorter} With fewer trials, the result would be mostly chance.${help}`;
}

/** @type {Record<string, string>} */
const TENDENCIES = { higher: "higher values tend to score better", lower: "lower values tend to score better" };

/**
 * Return which values tend to score better.
 * @param {Influence} influence
 */
function tendency(influence) {
  if (influence.verdict === "choice") return `${influence.best.join(" or ")} tends to score best`;
  return TENDENCIES[influence.verdict] ?? "no clear tendency";
}

/** @param {number} share */
const percent = (share) => `${(100 * share).toFixed(1)} %`;

/**
 * Return the last report. It is requested again when the trials have changed, and while the server computes it.
 * @param {Scene} scene
 */
function reportOf({ job, store, again }) {
  const cached = known.get(job) ?? { version: -1, loading: false, report: null, failed: false };
  known.set(job, cached);
  if (cached.version !== store.version && !cached.loading) {
    cached.loading = true;
    cached.version = store.version;
    load(job, cached, again);
  }
  return cached;
}

/**
 * @param {number} job
 * @param {Cached} cached
 * @param {() => void} again
 */
async function load(job, cached, again) {
  const response = await fetch(address(`/api/v1/jobs/${job}/importance`)).catch(() => null);
  if (response?.ok) cached.report = await response.json();
  cached.failed = !cached.report;
  if (["computing", "stale", "missing"].includes(cached.report?.state ?? ""))
    setTimeout(() => load(job, cached, again), PAUSE);
  else cached.loading = false;
  again();
}
