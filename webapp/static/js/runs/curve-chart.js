// What every chart of learning curves offers: its x axis, its axis controls and its table.

/** @import { Curves } from "./curves.js" */
/** @import { Option, Table } from "../shared/charts/types.js" */
/** @import { Offer } from "../shared/charts/axes.js" */
import { isTimed } from "../shared/charts/axes.js";

/** How the time of training is measured; empty while a chart is drawn by epochs. @param {string} chart */
export const timeNote = (chart) =>
  isTimed(chart)
    ? "Each training starts at 0 with its first point. Pauses, waiting and restarts are left out: after them, an epoch " +
      "counts as long as the others took on average. Work that was lost and repeated counts once."
    : "";

/**
 * Return the choices of the x axis.
 * @param {Partial<Curves>} curves whose element may not be defined yet
 * @returns {Option[]}
 */
export const acrossOptions = ({ unit = "epoch" }) => [
  { value: "count", label: unit },
  { value: "time", label: "training time" },
];

/**
 * Return the control of the x axis.
 * @param {string} chart
 * @param {Partial<Curves>} curves
 */
export const acrossSelect = (chart, curves) => ({
  name: "x",
  label: "Across",
  options: acrossOptions(curves),
  value: isTimed(chart) ? "time" : "count",
});

/**
 * @param {string} chart
 * @returns {Offer}
 */
export const curveOffer = (chart) => ({
  scales: [
    { axis: "x", label: isTimed(chart) ? "x axis (s)" : "x axis", log: true, range: true },
    { axis: "y", label: "y axis", log: true, range: true },
  ],
  smoothing: true,
  outliers: "drawn",
});

/**
 * Return the figures of each curve as a table.
 * @param {Partial<Curves>} curves whose element may not be defined yet
 * @returns {Table}
 */
export const curveTable = ({ rows = [], note }) => ({
  head: [
    { label: "curve" },
    ...["points", "first", "least", "greatest", "last", "training time"].map((label) => ({ label, num: true })),
  ],
  rows,
  note: note?.textContent ?? "",
});
