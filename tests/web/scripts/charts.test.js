// The charts of a search draw only values that exist: gaps for inactive hyperparameters, panels for categories.

import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { arranged, partsOf } from "../../../webapp/static/js/search/charts/gaps.js";
import { interpolate, valueAt } from "../../../webapp/static/js/search/charts/surface.js";

const column = (key, values, more = {}) => ({
  key,
  label: key,
  kind: "hyperparameter",
  numeric: true,
  values,
  ...more,
});
const OPTIMIZER = column("optimizer", [0, 1, 1], { numeric: false, categories: ["sgd", "adam"] });
const MOMENTUM = column("momentum", [0.9, null, null]);
const BETA = column("beta", [null, 0.99, 0.9]);
const LOSS = column("loss", [0.5, 0.3, 0.2], { kind: "metric" });

test("a line has a gap at the axis of a hyperparameter that was not active", () => {
  const columns = [OPTIMIZER, MOMENTUM, BETA, LOSS];
  assert.deepEqual(partsOf(columns, 0), [
    [0, 1],
    [3, 3],
  ]);
  assert.deepEqual(partsOf(columns, 1), [
    [0, 0],
    [2, 3],
  ]);
  assert.deepEqual(partsOf([OPTIMIZER, LOSS], 1), [[0, 1]]);
});

test("axes of hyperparameters that are never active together are at both ends, so that lines have no gap", () => {
  const columns = arranged([OPTIMIZER, BETA, MOMENTUM], LOSS, [0, 1, 2]);
  assert.deepEqual(
    columns.map(({ key }) => key),
    ["beta", "optimizer", "loss", "momentum"],
  );
  assert.deepEqual(
    [0, 1].map((index) => partsOf(columns, index)),
    [[[1, 3]], [[0, 2]]],
  );
});

test("a space without conditions keeps its order, and the metric is last", () => {
  const size = column("size", [3, 2, 1]);
  assert.deepEqual(arranged([size, OPTIMIZER], LOSS, [0, 1, 2]), [size, OPTIMIZER, LOSS]);
});

const whole = (values) => ({ low: Math.min(...values), high: Math.max(...values), to: (at) => at, from: (at) => at });
const kinds = { low: -0.5, high: 2.5, to: (at) => at, from: (at) => at };

test("a contour has no values between categories, and none for a category without trials", () => {
  const size = column("size", [1, 3, 1, 3]);
  const kind = column("kind", [0, 0, 1, 1], { numeric: false, categories: ["a", "b", "c"] });
  const metric = column("loss", [1, 1, 9, 9], { kind: "metric" });
  const surface = interpolate([0, 1, 2, 3], kind, size, metric, kinds, whole([1, 3]));
  for (const [place, value] of [
    [0.01, 1],
    [0.33, 1],
    [0.34, 9],
    [0.66, 9],
    [0.67, Number.NaN],
    [0.99, Number.NaN],
  ])
    for (const height of [0, 0.5, 1]) assert.equal(Math.round(valueAt(surface, place, height)), value, `${place}`);
});

test("a contour between two numbers is interpolated", () => {
  const [x, y] = [column("x", [0, 1]), column("y", [0, 1])];
  const surface = interpolate([0, 1], x, y, column("loss", [0, 1]), whole([0, 1]), whole([0, 1]));
  const middle = valueAt(surface, 0.5, 0.5);
  assert.ok(Math.abs(middle - 0.5) < 0.01, `${middle}`);
  assert.ok(valueAt(surface, 0, 0) < 0.1 && valueAt(surface, 1, 1) > 0.9);
});
