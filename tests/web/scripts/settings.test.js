// The settings of charts in the address, and the axes, smoothing and outliers that follow from them.

import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { fenceOf, rangeSetting, scaleOf, smoothed, smoothingOf } from "../../../webapp/static/js/shared/charts/axes.js";
import { settings } from "../../../webapp/static/js/shared/charts/settings.js";
import { visit } from "./page.js";

test("a link from before charts had axes of their own still opens its chart", () => {
  visit("/jobs/1?tab=charts&chart=slice&ax.x=h.learning_rate&ax.compared=m.loss");
  assert.equal(settings.enlarged, "slice");
  assert.equal(settings.get("slice", "x"), "h.learning_rate");
  assert.equal(settings.get("compare", "metric"), "m.loss");
});

test("each chart keeps its own axes when another is enlarged, and all are in the address", () => {
  visit("/jobs/1?tab=charts&chart=slice");
  settings.set("slice", { x: "h.learning_rate", yrange: rangeSetting(0.8, undefined), ylog: "on" });
  settings.enlarge("rank");
  settings.set("rank", { x: "h.units" });
  settings.enlarge("slice");
  assert.equal(settings.get("slice", "x"), "h.learning_rate");
  assert.deepEqual(scaleOf("slice", "y"), { log: true, low: 0.8, high: undefined });
  const address = location.search;
  assert.match(address, /^\?tab=charts&.*chart=slice.*ax\.slice\.yrange=0\.8\.\./);
  settings.reset("slice");
  assert.equal(location.search.includes("ax.slice"), false);
  visit(address);
  assert.equal(settings.get("rank", "x"), "h.units");
  assert.equal(scaleOf("slice", "y").low, 0.8);
});

test("a smoothing outside its limits is brought back", () => {
  for (const [text, wanted] of [
    ["0.5", 0.5],
    ["7", 0.99],
    ["-1", 0],
    ["much", 0],
  ]) {
    visit(`/jobs/1?ax.curves.smooth=${text}`);
    assert.equal(smoothingOf("curves"), wanted);
  }
});

test("a moving average is corrected for the values that are missing before the first", () => {
  const [first, second, none, fourth] = smoothed([4, 8, null, 8], 0.5);
  assert.equal(first, 4);
  assert(Math.abs(second - (0.5 * 4 * 0.5 + 0.5 * 8) / 0.75) < 1e-9);
  assert.equal(none, null);
  assert(second < fourth && fourth < 8);
});

test("a few bad values are outliers, a good one or many never are", () => {
  const values = Array.from({ length: 40 }, (_, at) => 0.9 + at / 1000);
  assert.equal(fenceOf(values, "max"), null);
  assert.deepEqual(fenceOf([...values, -50], "max"), { at: 0.9, beyond: 1 });
  assert.equal(fenceOf([...values, 50], "max"), null, "it is better");
  assert.equal(fenceOf([...values, 50], "min").beyond, 1);
  assert.equal(fenceOf([...values, ...Array(5).fill(-50)], "max"), null, "more than a tenth");
  assert.equal(fenceOf([1, 2, -50], "max"), null, "with few values, none is an outlier");
});
