// Learning curves before they are drawn: their looks, the time of training, and samples of many points.

import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { looksOf } from "../../../webapp/static/js/runs/curve-looks.js";
import { sampleOf } from "../../../webapp/static/js/runs/curve-points.js";
import { trainingTimes } from "../../../webapp/static/js/runs/training-time.js";

const line = (name, { trial = null, points = [] } = {}) => ({
  name,
  job: 1,
  trial,
  execution: trial && 1,
  points: new Map(points.map(([epoch, attempt, time]) => [epoch, { value: 1, attempt, time }])),
});

test("two metrics of one split differ in their lines, two splits of one metric in their colours", () => {
  const [accuracy, loss] = looksOf([line("val_accuracy"), line("val_loss")]);
  assert.equal(accuracy.stroke, loss.stroke);
  assert.notDeepEqual(accuracy.dash, loss.dash);
  const [training, validation] = looksOf([line("loss"), line("val_loss")]);
  assert.notEqual(training.stroke, validation.stroke);
  assert.deepEqual([training.dash, validation.dash], [[], []]);
});

test("each of several trials has a colour, and its training is dashed", () => {
  const lines = [1, 2].flatMap((trial) => [line("loss", { trial }), line("val_loss", { trial })]);
  const [first, validation, second] = looksOf(lines);
  assert.equal(first.stroke, validation.stroke);
  assert.notEqual(first.stroke, second.stroke);
  assert.notDeepEqual(first.dash, []);
  assert.deepEqual(validation.dash, []);
});

test("lost work and a first pause without known epochs have times", () => {
  const restarted = line("loss", {
    trial: 1,
    points: [
      [1, 2, 500],
      [2, 2, 510],
      [3, 1, 30],
      [4, 1, 40],
    ],
  });
  const pausedAtOnce = line("loss", {
    trial: 2,
    points: [
      [1, 1, 10],
      [2, 2, 900],
      [3, 2, 904],
    ],
  });
  const equal = line("loss", {
    trial: 3,
    points: [
      [1, 1, 10],
      [2, 1, 10],
      [3, 1, 10],
    ],
  });
  const late = line("loss", {
    trial: 4,
    points: [
      [1, 1, 10],
      [2, 1, 20],
    ],
  });
  const later = line("val_loss", { trial: 4, points: [[2, 1, 20]] });
  const times = trainingTimes([restarted, pausedAtOnce, equal, late, later]);
  const of = (each) => [...times.get(each)];
  assert.deepEqual(
    of(restarted),
    [
      [1, 0],
      [2, 10],
    ],
    "epochs of the first attempt are not reached again",
  );
  assert.deepEqual(
    of(pausedAtOnce),
    [
      [1, 0],
      [2, 4],
      [3, 8],
    ],
    "the epoch after the pause takes as long as the other",
  );
  const seconds = of(equal).map(([, second]) => second);
  assert(seconds.every((second) => second < 1e-4));
  assert.equal(new Set(seconds).size, 3, "each point has a place of its own");
  assert.deepEqual(of(later), [[2, 10]], "the lines of a training share their start");
});

test("of many long curves an even sample with the last points is drawn", () => {
  const spots = [1, 2, 3, 4, 5, 6, 7, 8].map((x) => ({ x, at: 9 * x, value: x }));
  assert.deepEqual(
    sampleOf(spots, 3).map(({ x }) => x),
    [1, 4, 7, 8],
  );
});
