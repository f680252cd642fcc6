// Ranges as the form writes them; tests/contracts/test_range_text.py reads the same examples on the server.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { rangeText, valuesText } from "../../../webapp/static/js/experiments/form/range-text.js";

const EXAMPLES = JSON.parse(readFileSync(new URL("ranges.json", import.meta.url), "utf8"));

for (const { text, row } of EXAMPLES) test(`a range is written as ${text}`, () => assert.equal(rangeText(row), text));

test("a text that the server could not read stays as it was typed", () => {
  assert.equal(rangeText({ range: "16 .. x" }), "16 .. x");
});

test("bounds of an old draft are shown also if they are no numbers, or missing", () => {
  assert.equal(rangeText({ min: "16x" }), "16x … ");
});

test("each kind of hyperparameter has its values in words", () => {
  assert.equal(valuesText({ kind: "choice", values: ["adam", 3] }), "adam, 3");
  assert.equal(valuesText({ kind: "boolean" }), "yes or no");
  assert.equal(valuesText({ kind: "fixed", value: 7 }), "7");
});
