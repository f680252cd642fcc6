// Shows how much of a file has been sent, how fast, and how long the rest takes.
import { find } from "../shared/elements.js";

const WINDOW_SECONDS = 8;
const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** @param {number} bytes */
export function sizeOf(bytes) {
  let power = 0;
  let size = bytes;
  for (; size >= 1000 && power < UNITS.length - 1; power++) size /= 1000;
  return `${power ? size.toFixed(1) : size} ${UNITS[power]}`;
}

/** @param {number} seconds */
function durationOf(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export class ProgressBar {
  /** @type {[number, number][]} Seconds, and the bytes sent by then, of the last moments. */
  #moments = [];

  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
  }

  /**
   * @param {number} sent
   * @param {number} total
   */
  show(sent, total) {
    const now = performance.now() / 1000;
    this.#moments.push([now, sent]);
    while (this.#moments.length > 2 && this.#moments[0][0] < now - WINDOW_SECONDS) this.#moments.shift();
    find(this.place, "progress", HTMLProgressElement).value = total ? (100 * sent) / total : 100;
    const [since, before] = this.#moments[0];
    const speed = now > since ? (sent - before) / (now - since) : 0;
    const rest = speed > 0 ? `, ${sizeOf(speed)}/s, ${durationOf((total - sent) / speed)} left` : "";
    find(this.place, "[data-sent]", HTMLElement).textContent = `${sizeOf(sent)} of ${sizeOf(total)}${rest}`;
  }

  /** Forget the speed: nothing is sent for a while. */
  pause() {
    this.#moments = [];
  }

  /**
   * Report the state, also to screen readers, which do not read the numbers.
   * @param {string} text
   */
  announce(text) {
    find(this.place, "[data-sending-state]", HTMLElement).textContent = text;
  }
}
