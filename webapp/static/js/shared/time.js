// Updates relative times while the page stays open, in the format of `words.relative` on the server.
import { findAll } from "./elements.js";

/** @type {[number, string][]} */
const STEPS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];
const EVERY = 15000;

/**
 * Return how long ago a moment was; negative seconds are in the future.
 * @param {number} seconds
 */
export function relative(seconds) {
  const size = Math.abs(seconds);
  if (size < 10) return "just now";
  const [step, unit] = STEPS.find(([length]) => size >= length) ?? [1, "s"];
  return seconds > 0 ? `${Math.floor(size / step)} ${unit} ago` : `in ${Math.round(size / step)} ${unit}`;
}

/** @param {ParentNode} within */
export function refresh(within = document) {
  for (const element of findAll(within, "time[data-relative]", HTMLTimeElement)) {
    const text = relative((Date.now() - Date.parse(element.dateTime)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

setInterval(() => refresh(), EVERY);
