// Marks in live charts: a vertical line with a label, for example at the epoch that a training chose.
/** @import { Options } from "uplot" */

/**
 * Return the options of a chart that draw a dashed line at `x`.
 * @param {number} x
 * @param {string} label
 * @returns {Partial<Options>}
 */
export function lineAt(x, label) {
  return {
    hooks: {
      draw: [
        (chart) => {
          const { ctx, bbox } = chart;
          const at = Math.round(chart.valToPos(x, "x", true));
          if (at < bbox.left || at > bbox.left + bbox.width) return; // zoomed away
          const ratio = window.devicePixelRatio || 1;
          const colour = getComputedStyle(chart.root).color; // a canvas does not resolve variables
          ctx.save();
          ctx.strokeStyle = ctx.fillStyle = colour;
          ctx.setLineDash([4 * ratio, 3 * ratio]);
          ctx.beginPath();
          ctx.moveTo(at, bbox.top);
          ctx.lineTo(at, bbox.top + bbox.height);
          ctx.stroke();
          ctx.font = `${11 * ratio}px Inter, sans-serif`;
          const room = bbox.left + bbox.width - at;
          ctx.textAlign = room < ctx.measureText(label).width + 8 * ratio ? "right" : "left";
          ctx.fillText(label, at + (ctx.textAlign === "left" ? 4 : -4) * ratio, bbox.top + 12 * ratio);
          ctx.restore();
        },
      ],
    },
  };
}
