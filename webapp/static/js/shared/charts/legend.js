// The names and colours of a chart's lines. Clicking a name hides its line.

/** @import uPlot from "uplot" */
import { el } from "../dom.js";

const MOST = 12;

/**
 * An entry of a legend: the name of some series of a chart, which it shows or hides together.
 * @typedef {{ label: string, colour: string, series: number[], dash?: number[], dot?: boolean }} Entry
 */

/** @param {number[]} dash */
const lineClass = ([length]) => (length === undefined ? "ty-line" : length < 4 ? "ty-dots" : "ty-dash");

/**
 * Return the legend of a chart; null if it would have more entries than anyone reads.
 * @param {uPlot} chart
 * @param {Entry[]} entries
 */
export function legendOf(chart, entries) {
  if (!entries.length || entries.length > MOST) return null;
  return el(
    "div",
    { class: "ty-chart-legend" },
    entries.map(({ label, colour, series, dash = [], dot }) => {
      const mark = el("span", { class: dot ? "ty-swatch" : lineClass(dash) });
      mark.style.color = colour;
      const button = el("button", { type: "button", "aria-pressed": "true", title: `Hide ${label}` }, mark, label);
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        button.title = `${shown ? "Hide" : "Show"} ${label}`;
        chart.batch(() => {
          for (const at of series) chart.setSeries(at, { show: shown });
        });
      });
      return button;
    }),
  );
}
