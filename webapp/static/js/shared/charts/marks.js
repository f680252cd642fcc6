// Marks in live charts: a vertical line with a label, for example at the epoch that a training chose.
/** @import uPlot from "uplot" */
/** @import { Options } from "uplot" */

/** A place on the x axis, with its label. @typedef {{ x: number, label: string }} Mark */

/**
 * Return the options of a chart that draw a dashed line at `x`.
 * @param {number} x
 * @param {string} label
 * @returns {Partial<Options>}
 */
export const lineAt = (x, label) => ({ hooks: { draw: [(chart) => drawMarks(chart, [{ x, label }])] } });

/**
 * Draw a dashed line with its label at each mark. A label that would cover the one before is left out.
 * @param {uPlot} chart
 * @param {Mark[]} marks in order
 */
export function drawMarks(chart, marks) {
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = getComputedStyle(chart.root).color; // a canvas does not resolve variables
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.font = `${11 * ratio}px Inter, sans-serif`;
  let free = bbox.left; // from here on, labels cover no other one
  for (const { x, label } of marks) {
    const at = Math.round(chart.valToPos(x, "x", true));
    if (at < bbox.left || at > bbox.left + bbox.width) continue; // zoomed away
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const gap = 4 * ratio;
    const { width } = ctx.measureText(label);
    const isLeft = at + gap + width > bbox.left + bbox.width;
    const from = isLeft ? at - gap - width : at + gap;
    if (from < free) continue;
    ctx.fillText(label, from, bbox.top + 12 * ratio);
    free = Math.max(at, from + width) + gap;
  }
  ctx.restore();
}
