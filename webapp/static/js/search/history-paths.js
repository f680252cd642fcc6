// Draws the history of ten thousand trials: its line of best scores, and its dots, pixel by pixel.

/** @import uPlot from "uplot" */
/** @import { Series } from "uplot" */
import { el } from "../shared/dom.js";

/** @typedef {[series: number, colour: string]} Coloured */
/**
 * @typedef {{ width: number, height: number, pen: CanvasRenderingContext2D, image: ImageData, pixels: Uint32Array }} Pixels
 */

const layer = el("canvas");
/** @type {Pixels | null} */
let picture = null;

/**
 * Return an empty picture of a size; the last one is used again if it has that size.
 * @param {number} width
 * @param {number} height
 */
function blank(width, height) {
  if (picture?.width === width && picture.height === height) {
    picture.pixels.fill(0);
    return picture;
  }
  [layer.width, layer.height] = [width, height];
  const pen = layer.getContext("2d", { willReadFrequently: true });
  if (!pen) throw new TypeError("the browser draws no canvas");
  const image = pen.createImageData(width, height);
  picture = { width, height, pen, image, pixels: new Uint32Array(image.data.buffer) };
  return picture;
}

/**
 * Return a colour as a pixel of a picture.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} colour
 */
function pixelOf(pen, colour) {
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return new Uint32Array(pen.getImageData(0, 0, 1, 1).data.buffer)[0];
}

/**
 * Draw thousands of dots as squares, pixel by pixel: as rectangles or arcs they would take ten times as long.
 * @param {uPlot} chart
 * @param {Coloured[]} drawn
 */
export function squares({ ctx, bbox, data, scales }, drawn) {
  const size = Math.round(3 * devicePixelRatio);
  const { pen, image, pixels, width } = blank(bbox.width + size, bbox.height + size);
  const { min: first = 0, max: last = 1 } = scales.x;
  const to = scales.y.distr === 3 ? Math.log10 : (/** @type {number} */ value) => value;
  const [low, high] = [to(scales.y.min ?? 0), to(scales.y.max ?? 1)];
  const across = bbox.width / (last - first);
  const up = bbox.height / (high - low);
  const [xs] = data;
  for (const [series, colour] of drawn) {
    const [ys, ink] = [data[series], pixelOf(pen, colour)];
    for (let at = 0; at < xs.length; at++) {
      const y = ys[at];
      if (y === null || y === undefined) continue;
      let corner = Math.round((high - to(y)) * up) * width + Math.round((xs[at] - first) * across);
      for (let line = 0; line < size; line++, corner += width) {
        for (let place = 0; place < size; place++) pixels[corner + place] = ink;
      }
    }
  }
  pen.putImageData(image, 0, 0);
  ctx.drawImage(layer, bbox.left - (size >> 1), bbox.top - (size >> 1));
}

/**
 * Draw a line with a corner where its values change: one through ten thousand points takes as long as all the dots.
 * @param {uPlot} chart
 * @param {number} series
 * @param {number[]} corners
 * @returns {Series.Paths}
 */
export function stairs(chart, series, corners) {
  const stroke = new Path2D();
  const [xs, ys] = [chart.data[0], chart.data[series]];
  /** @type {number | null} */
  let level = null;
  for (const at of corners) {
    if (ys[at] === null || ys[at] === undefined) continue;
    const x = Math.round(chart.valToPos(xs[at], "x", true));
    const y = Math.round(chart.valToPos(Number(ys[at]), "y", true));
    if (level === null) stroke.moveTo(x, y);
    else stroke.lineTo(x, level);
    stroke.lineTo(x, y);
    level = y;
  }
  return { stroke, fill: null, clip: null, band: null, flags: 0 };
}
