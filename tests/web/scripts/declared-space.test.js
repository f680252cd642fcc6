// Rows of a form follow what own code declares, until a person changes them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { followed, isSame } from "../../../webapp/static/js/experiments/form/declared-space.js";

const units = (max) => ({ name: "units", kind: "int", min: 8, max, sampling: "linear" });
const RATE = { name: "rate", kind: "float", min: 0.1, max: 1 };
const DEPTH = { name: "depth", kind: "int", min: 1, max: 3 };

test("an untouched space is the one that the new arguments declare", () => {
  assert.deepEqual(followed([units(16), RATE], [units(16), RATE], [units(64), DEPTH]), [units(64), DEPTH]);
});

test("a changed row, an added one and one that was removed stay so", () => {
  const mine = { ...units(16), max: 12 };
  const fit = { name: "fit/epochs", kind: "choice", values: [5, 10] };
  assert.deepEqual(followed([mine, fit], [units(16), RATE], [units(64), RATE, DEPTH]), [mine, fit, DEPTH]);
});

test("an empty space is filled, and a stored one is kept after the first build", () => {
  assert.deepEqual(followed([], null, [DEPTH]), [DEPTH]);
  assert.deepEqual(followed([units(12)], null, [units(64), DEPTH]), [units(12)]);
});

test("rows are the same in any order of their fields, with and without defaults", () => {
  assert.ok(isSame({ max: 16, min: 8, kind: "int", name: "units" }, { ...units(16), step: null }));
  assert.ok(!isSame(units(16), units(12)));
});
