// <ty-history job direction>: the score of each trial and the best so far.
import uPlot from "../../vendor/uplot-1.6.32/uPlot.esm.js";
import { options } from "./curves.js";
import { follow } from "./live.js";

const PAUSE = 1000;

class History extends HTMLElement {
  connectedCallback() {
    this.job = Number(this.getAttribute("job"));
    this.note = Object.assign(document.createElement("div"), { className: "ty-chart-note" });
    this.append(this.note);
    const start = Number(document.querySelector("[data-cursor]")?.dataset.cursor ?? 0);
    this.stop = follow(this.job, start, (events) => {
      if (events.some((event) => event.type === "trial") && !this.timer) {
        this.timer = setTimeout(() => this.load(), PAUSE);
      }
    });
    this.load();
  }

  disconnectedCallback() {
    this.stop?.();
    clearTimeout(this.timer);
    this.chart?.destroy();
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
    this.draw(trials.filter((trial) => trial.score !== null));
  }

  draw(trials) {
    this.chart?.destroy();
    this.chart = null;
    this.note.textContent = trials.length ? `${trials.length} trials` : "No trial has been completed yet.";
    if (!trials.length) return;
    const better = this.getAttribute("direction") === "max" ? Math.max : Math.min;
    const scores = trials.map((trial) => trial.score);
    const best = scores.map((_, index) => better(...scores.slice(0, index + 1)));
    const settings = options(this.clientWidth, ["score", "best so far"]);
    Object.assign(settings.series[1], { paths: () => null, points: { show: true, size: 6 } });
    Object.assign(settings.series[2], { paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } });
    this.chart = new uPlot(settings, [trials.map((trial) => trial.number), scores, best], this);
    this.append(this.note);
  }
}

customElements.define("ty-history", History);
