// <ty-history job direction>: the score of each trial and the best so far.
import uPlot from "../../vendor/uplot-1.6.32/uPlot.esm.js";
import { Chart } from "./chart.js";

const PAUSE = 1000;

class History extends Chart {
  begin() {
    this.trials = [];
    this.load();
  }

  end() {
    clearTimeout(this.timer);
    super.end();
  }

  take(events) {
    if (this.timer || !events.some((event) => event.type === "trial")) return;
    this.timer = setTimeout(() => this.load(), PAUSE);
  }

  async load() {
    this.timer = null;
    const trials = [];
    let cursor = "";
    do {
      const answer = await fetch(`/api/v1/jobs/${this.job}/trials?limit=200${cursor && `&cursor=${cursor}`}`);
      if (!answer.ok) return;
      const page = await answer.json();
      trials.push(...page.items);
      cursor = page.next ?? "";
    } while (cursor);
    this.trials = trials.filter((trial) => trial.score !== null);
    this.note.textContent = this.trials.length ? `${this.trials.length} trials` : "No trial has been completed yet.";
    if (this.stop) this.rebuild();
  }

  picture() {
    if (!this.trials.length) return null;
    const better = this.getAttribute("direction") === "max" ? Math.max : Math.min;
    const scores = this.trials.map((trial) => trial.score);
    const best = scores.map((_, index) => better(...scores.slice(0, index + 1)));
    const dots = { paths: () => null, points: { show: true, size: 6 } };
    const steps = { paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } };
    const columns = [this.trials.map((trial) => trial.number), scores, best];
    return { labels: ["score", "best so far"], columns, drawn: [dots, steps] };
  }
}

customElements.define("ty-history", History);
