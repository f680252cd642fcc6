// The score of each trial and the best so far, by uPlot: it is live, and ten thousand dots cost it little.

import { el } from "../dom.js";
import { number } from "../words.js";
import { behind, needsTrials } from "./shared.js";

const elements = new Map();

export const history = {
  id: "history",
  title: "History",
  missing: needsTrials(1),
  draw(scene) {
    const { store, view, job } = scene;
    if (!elements.has(job)) elements.set(job, el("ty-history", { job, tall: true }));
    const { fits } = view;
    const all = store.scored();
    const found = all.filter(fits);
    return {
      element: elements.get(job),
      note: behind(found, all),
      foot: "Drag across to keep those trials, here and in the table; with the chart in focus, arrows go from trial to trial.",
      table: () => {
        let best = null;
        const rows = all.map((index) => {
          const score = store.score[index];
          if (best === null || store.better(score, best)) best = score;
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
