// What every chart of learning curves offers: its axis controls and its table.

/** @import { Curves } from "../jobs/curves.js" */
/** @import { Table } from "../trials/types.js" */
/** @import { Offer } from "./axes.js" */

/** @type {Offer} */
export const CURVE_OFFER = {
  scales: [
    { axis: "x", label: "x axis", log: true, range: true },
    { axis: "y", label: "y axis", log: true, range: true },
  ],
  smoothing: true,
  outliers: "drawn",
};

/**
 * Return the figures of each curve as a table.
 * @param {Partial<Curves>} curves whose element may not be defined yet
 * @returns {Table}
 */
export const curveTable = ({ rows = [] }) => ({
  head: [
    { label: "curve" },
    ...["points", "first", "least", "greatest", "last"].map((label) => ({ label, num: true })),
  ],
  rows,
});
