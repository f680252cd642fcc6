// Learning curves of the selected trials, or of the best of those that fit the filters.

/** @import { Chart } from "../types.js" */
import { acrossOptions, curveOffer, curveTable, timeNote } from "../../runs/curve-chart.js";
import { Curves } from "../../runs/curves.js";
import { el } from "../../shared/dom.js";
import { writeNames } from "../../shared/names.js";
import { grouped, trials } from "../../shared/words.js";
import { curveNames, drawn, needsTrials } from "./shared.js";

const BEST = 8;
const MOST = 20;
const FOOT = "Select trials in the table (x) to show their curves instead. Every point is in the metrics CSV.";
/** The element of the last drawing, which is kept while it shows the same metric. */
let element = new Curves();

/** @type {Chart} */
export const curves = {
  id: "curves",
  title: "Learning curves",
  controls: [
    { name: "metric", label: "Metric", options: curveNames, first: ({ store }) => store.objective.metric },
    { name: "x", label: "Across", options: () => acrossOptions(element) },
  ],
  missing: needsTrials(1),
  offer: () => curveOffer("curves"),
  draw(scene) {
    const { store, view, axes, job } = scene;
    const { found, all } = drawn(scene, []);
    const score = /** @type {number[]} */ (store.score);
    const ranked = [...found].sort((a, b) => (store.better(score[a], score[b]) ? -1 : 1));
    const selected = [...view.selected].filter((trial) => store.place.has(trial)).slice(0, MOST);
    const numbers = selected.length ? selected : ranked.slice(0, BEST).map((index) => store.number[index]);
    const wanted = { job: String(job), key: "curves", names: writeNames([axes.metric]), trials: numbers.join() };
    if (!element.show(wanted)) element = /** @type {Curves} */ (el("ty-curves", wanted));
    element.pick = (trial) => view.toggleSelected(trial);
    return {
      element,
      note: selected.length
        ? `${trials(selected.length)} selected of ${grouped(all.length)} with a score`
        : `the best ${numbers.length} of ${trials(found.length)}`,
      foot: `${FOOT} ${timeNote("curves")}`.trimEnd(),
      table: () => curveTable(element),
    };
  },
};
