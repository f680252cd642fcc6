// The plan of the job: a line of figures at the foot, and all of it in the review.

/** @import { FineTuning, Plan, Problem, Verdict } from "./types.js" */
import { find } from "../../shared/elements.js";
import { grouped as count } from "../../shared/words.js";
import { placeOf, sentence } from "./problems.js";

/** @param {number | null | undefined} size */
export function bytes(size) {
  if (size === null || size === undefined) return "unknown";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  let value = size;
  while (value >= 1000 && power < units.length - 1) {
    value /= 1000;
    power += 1;
  }
  return power ? `${value.toFixed(1)} ${units[power]}` : `${value} B`;
}

/** @param {number} hours */
function deviceTime(hours) {
  const minutes = hours * 60;
  // Rounded up, since it may be a bound; and a time that is not zero is never shown as 0.0.
  return minutes < 90
    ? `${minutes < 1 ? (Math.ceil(minutes * 10) / 10).toFixed(1) : Math.ceil(minutes)} device-min`
    : `${hours.toFixed(1)} device-h`;
}

/**
 * Return the time at most and, where it can be estimated from earlier trainings, the likely time.
 * @param {Plan} plan
 */
function hours(plan) {
  if (plan.device_hours === null) return "no estimate yet";
  const most = `≤ ${deviceTime(plan.device_hours)}`;
  const likely = deviceTime(plan.device_hours_likely);
  return most === `≤ ${likely}` ? most : `${most}, likely ${likely}`;
}

/** @param {Plan} plan */
function epochs(plan) {
  const parts = plan.epochs_of_retraining
    ? ` (search ≤ ${count(plan.epochs_of_search)}, retraining ≤ ${count(plan.epochs_of_retraining)})`
    : "";
  const most = `≤ ${count(plan.epochs)}${parts}`;
  return plan.epochs_likely === null || plan.epochs_likely >= plan.epochs
    ? most
    : `${most}, likely ${count(plan.epochs_likely)}`;
}

/**
 * @param {Plan} plan
 * @returns {[string, string][]}
 */
function figures(plan) {
  // The number of trials is then only a bound.
  const limit = plan.max_minutes === null ? null : `${count(plan.max_minutes)} min`;
  const number = limit ? `trials for ${limit}` : `${count(plan.trials)} trials`;
  // Own code declares its space in a dry build: until that is done, a search has none.
  const isSearch = plan.summary.length > 0 || plan.trials > 1;
  const trials = isSearch ? `${number} × ${plan.executions / plan.trials}` : "one training";
  const devices = plan.devices === 1 ? "1 device" : `${plan.devices} ${plan.device_kind} devices`;
  return [
    ["Runs", trials],
    ["Epochs", limit ? "as time allows" : epochs(plan)],
    ["Slots", `${plan.slots} (${plan.free_slots} free)`],
    ["Devices", devices],
    ["Memory per device", bytes(plan.memory_per_device)],
    ["Time", limit ? `${limit}, then the steps` : hours(plan)],
  ];
}

/**
 * @param {Plan} plan
 * @returns {[string, string][]}
 */
function details(plan) {
  const held =
    plan.memory &&
    Object.entries(plan.memory)
      .map(([name, size]) => `${name} ${bytes(size)}`)
      .join(", ");
  const largest = Object.entries(plan.largest)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
  return [
    ["Steps", plan.steps.join(" → ")],
    ["Search space", plan.space || "–"],
    ...plan.summary.map(
      ({ name, takes, when }) => /** @type {[string, string]} */ ([name, when ? `${takes}, when ${when}` : takes]),
    ),
    ["Executions", plan.max_minutes === null ? count(plan.executions) : "as many as the time allows"],
    ["Retrained", count(plan.retrainings)],
    ["Epoch chosen by", plan.epoch_chosen_by],
    ["Stopped early by", plan.stopped_by ?? "nothing"],
    ["Slots per trial", count(plan.slots_per_trial)],
    [
      "Time limit of a training",
      plan.minutes_per_training === null ? "none" : `${count(plan.minutes_per_training)} min`,
    ],
    ["Parallel trials, with the slots free now", count(plan.parallel_trials)],
    ["Batch divided into", `${plan.batch_shards} part${plan.batch_shards === 1 ? "" : "s"}`],
    ["Parameters, at most", plan.parameters === null ? "unknown" : count(plan.parameters)],
    ...tuning(plan.fine_tuning),
    ["Memory for", held || "unknown"],
    ...(plan.variables_note ? [/** @type {[string, string]} */ (["Variables", plan.variables_note])] : []),
    ["Largest configuration", largest || (held ? "the model as it is" : "unknown")],
    ["Estimate", plan.estimate],
  ];
}

/**
 * @param {FineTuning | null} tuned
 * @returns {[string, string][]}
 */
function tuning(tuned) {
  if (!tuned) return [];
  const frozen = tuned.layers.filter((layer) => layer.frozen);
  const last = frozen.at(-1);
  const trained = tuned.trainable === null ? "unknown" : count(tuned.trainable);
  return [
    ["Starts from", tuned.version],
    ["Frozen layers", last ? `${frozen.length} of ${tuned.layers.length}, up to ${last.path}` : "none"],
    ["Trained parameters", tuned.parameters === null ? trained : `${trained} of ${count(tuned.parameters)}`],
  ];
}

/** @param {[string, string][]} entries */
function pairs(entries) {
  return entries.map(([name, value]) => {
    const pair = document.createElement("div");
    pair.append(
      Object.assign(document.createElement("dt"), { textContent: name }),
      Object.assign(document.createElement("dd"), { textContent: value }),
    );
    return pair;
  });
}

export class PlanView {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.foot = find(form, "[data-plan]", HTMLElement);
    this.verdict = find(form, "[data-verdict]", HTMLElement);
    this.review = (/** @type {string} */ part) => find(form, `[data-review="${part}"]`, HTMLElement);
  }

  /** @param {Verdict} verdict */
  show({ state, plan, errors = [] }) {
    const badge = find(document, `template[data-icon="${state}"]`, HTMLTemplateElement).content.cloneNode(true);
    this.verdict.replaceChildren(badge);
    if (state !== "ok" && state !== "bad") return;
    this.foot.replaceChildren(...(plan ? pairs(figures(plan)) : []));
    this.review("facts").replaceChildren(...(plan ? pairs([...figures(plan), ...details(plan)]) : []));
    this.review("warnings").replaceChildren(...(plan?.warnings ?? []).map((warning) => this.note(warning)));
    this.review("problems").replaceChildren(...errors.map((error) => this.note(error, "ty-error")));
  }

  /**
   * @param {Problem} problem
   * @param {string} css
   */
  note(problem, css = "") {
    const { pointer } = problem;
    const note = Object.assign(document.createElement("div"), { className: `ty-note ty-note-warn ef-note ${css}` });
    const link = Object.assign(document.createElement("a"), {
      href: "#",
      textContent: placeOf(pointer),
    });
    link.dataset.goto = pointer.startsWith("/spec") || pointer === "/name" ? pointer : `/spec${pointer}`;
    const text = document.createElement("p");
    text.append(link, " ", sentence(problem));
    note.append(find(document, 'template[data-icon="warning"]', HTMLTemplateElement).content.cloneNode(true), text);
    return note;
  }
}
