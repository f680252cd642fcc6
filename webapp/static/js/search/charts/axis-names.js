// The names of parallel axes, in as many lines as their distance needs.

const MOST_LINES = 4;
const GAP = 4; // pixels between two names
const FONT = "11px Inter, sans-serif";
const ELLIPSIS = "…";
export const LINE = 13; // pixels

const pen = document.createElement("canvas").getContext("2d");

/** @param {string} text */
function widthOf(text) {
  if (!pen) throw new TypeError("the browser draws no canvas");
  pen.font = FONT;
  return pen.measureText(text).width;
}

/**
 * Return the names of axes at equal distances, with line breaks so that no name reaches the next one or the edge.
 * @param {string[]} labels
 * @param {{ width: number, left: number, right: number }} place of the axes in the picture
 */
export function axisNames(labels, { width, left, right }) {
  const last = labels.length - 1;
  const distance = last ? (width - left - right) / last : width;
  return labels.map((label, at) => {
    const edge = Math.min(at ? distance : left * 2, at < last ? distance : right * 2);
    return wrapped(label, Math.min(distance, edge) - GAP).join("\n");
  });
}

/**
 * Break a name after its separators, or within a part that is too long for a line.
 * @param {string} label
 * @param {number} room in pixels
 */
function wrapped(label, room) {
  /** @type {string[]} */
  const lines = [];
  for (const part of label.split(/(?<=[_.\-/ ])/).flatMap((word) => pieces(word, room))) {
    const line = lines.at(-1);
    if (line !== undefined && widthOf(line + part) <= room) lines[lines.length - 1] = line + part;
    else lines.push(part);
  }
  if (lines.length <= MOST_LINES) return lines;
  const cut = lines.slice(0, MOST_LINES);
  cut[MOST_LINES - 1] = cut[MOST_LINES - 1].slice(0, -1) + ELLIPSIS;
  return cut;
}

/**
 * Return a word in as few parts of about equal length as fit.
 * @param {string} word
 * @param {number} room
 * @returns {string[]}
 */
function pieces(word, room) {
  for (let count = Math.max(1, Math.ceil(widthOf(word) / room)); count < word.length; count++) {
    const length = Math.ceil(word.length / count);
    const parts = Array.from({ length: count }, (_, at) => word.slice(at * length, (at + 1) * length));
    if (parts.every((part) => widthOf(part) <= room)) return parts.filter(Boolean);
  }
  return [...word];
}
