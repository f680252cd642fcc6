// The colours of charts. They come from the theme, and a training or a validation metric has the same one on every page.

/** @type {HTMLElement | null} */
let probe = null;
const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

/**
 * Return a colour of the theme as `rgb(…)`. The theme writes some as `light-dark(…)` or `oklch(…)`, which neither a
 * canvas nor the libraries understand.
 * @param {string} name
 */
export function themeColour(name) {
  if (!pen) throw new TypeError("the browser draws no canvas");
  if (!probe) {
    probe = document.body.appendChild(document.createElement("span"));
    probe.hidden = true;
  }
  probe.style.color = `var(${name})`;
  pen.fillStyle = getComputedStyle(probe).color;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  return `rgb(${red}, ${green}, ${blue})`;
}

/** Reported each epoch like metrics, but chosen by the training: no value is better than another. */
export const SETTINGS_OF_TRAINING = new Set(["lr", "loss_scale", "skipped_steps"]);

/** @typedef {"train" | "validation" | "other"} Split */

/**
 * Return which data a metric is measured on; system metrics and settings are measured on none.
 * @param {string} name
 * @returns {Split}
 */
export function splitOf(name) {
  if (name.startsWith("val_")) return "validation";
  return name.includes("/") || SETTINGS_OF_TRAINING.has(name) ? "other" : "train";
}

/** @param {Split} split */
export const splitColour = (split) => themeColour(`--ty-${split === "other" ? "queued" : split}`);

// Readable on both themes. None is blue or orange: training and validation have these.
const OF_TRIALS = ["#3a9d46", "#c2417f", "#7b62c9", "#8a7a2e", "#159a9c", "#b04a3f", "#5f7f95", "#a0579e"];

/**
 * Return the colour of one of several trials in a chart.
 * @param {number} place
 */
export const trialColour = (place) => OF_TRIALS[place % OF_TRIALS.length];

/** Line styles, as the lengths of dashes and gaps. */
export const DASHES = [[], [7, 4], [2, 3], [8, 3, 2, 3]];
