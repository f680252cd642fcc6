// The score of each trial and the best so far, by uPlot: it is live, and draws ten thousand dots fast.

/** @import { Chart } from "../types.js" */

import { el } from "../../shared/dom.js";
import { number } from "../../shared/words.js";
import { needsTrials } from "./shared.js";

/** @type {Map<number, HTMLElement>} */
const elements = new Map();

/** @type {Chart} */
export const history = {
  id: "history",
  title: "History",
  missing: needsTrials(1),
  offer: () => ({ scales: [{ axis: "y", label: "y axis", log: true, range: true }], outliers: "hidden" }),
  draw(scene) {
    const { store, view, job } = scene;
    const element = elements.get(job) ?? el("ty-history", { job, key: "history" });
    elements.set(job, element);
    const { fits } = view;
    const all = store.scored();
    return {
      element,
      foot: "Drag across to filter trials, here and in the table; click one to select it. With the chart in focus, the arrow keys go from trial to trial.",
      table: () => {
        const scores = /** @type {number[]} */ (store.score);
        let best = scores[all[0]];
        const rows = all.map((index) => {
          const score = scores[index];
          if (store.better(score, best)) best = score;
          return [store.number[index], number(score), number(best)];
        });
        return {
          head: ["trial", store.objective.metric, "best so far"].map((label) => ({ label, num: true })),
          rows: rows.filter((_, at) => fits(all[at])),
        };
      },
    };
  },
};
