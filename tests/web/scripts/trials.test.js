// The trials of a search as the table and the charts share them: columns, live progress, filters and sort.

import "./page.js";
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { storeOf } from "../../../webapp/static/js/search/store.js";
import { viewOf } from "../../../webapp/static/js/search/view.js";
import { duration } from "../../../webapp/static/js/shared/words.js";
import { holdTimers, json, server, sockets, visit } from "./page.js";

const NONE = [null, null, null];
const ANSWER = {
  whole: true,
  cursor: "7",
  unit: "epoch",
  objective: { metric: "val_loss", direction: "min" },
  objectives: [],
  space: [
    { name: "units", kind: "int" },
    { name: "optimizer", kind: "choice", values: ["sgd", "adam"] },
  ],
  states: ["running", "completed"],
  waiting: {},
  front: [],
  answers: {},
  under_way: { 3: { 1: { epochs: 2, of: 5 }, 2: { epochs: 2, of: 5 } } },
  number: [1, 2, 3],
  state: [1, 1, 0],
  score: [0.4, 0.2, null],
  std: NONE,
  by_hand: [false, false, false],
  restarts: [0, 0, 0],
  finished: [100.6, 160, null],
  seconds: [0.6, 60, null],
  executions: [1, 1, 2],
  epochs: [5, 5, 4],
  values: { units: [8, 16, 32], optimizer: [0, 1, 1] },
  metrics: { accuracy: [0.8, 0.9, null] },
};
const numbers = (view) => [...view.rows()].map((index) => view.store.number[index]);

async function opened(job, address) {
  visit(address);
  server.answer = async () => json(structuredClone(ANSWER));
  const view = viewOf(job);
  await new Promise((done) => view.store.addEventListener("change", done, { once: true }));
  return view;
}

test("the best score is first, and the address has the sort, the filters and the columns", async () => {
  const view = await opened(1, "/jobs/1");
  assert.deepEqual(numbers(view), [2, 1, 3]);
  view.sortBy("m.accuracy");
  assert.deepEqual(numbers(view), [2, 1, 3], "more is better");
  view.sortBy("m.accuracy");
  view.filter("h.optimizer", { one: ["adam"] });
  view.filter("h.units", { low: 10, high: Infinity });
  view.showColumns(new Set(["h.units"]));
  assert.deepEqual(numbers(view), [2, 3]);
  const again = await opened(2, location.href);
  assert.equal(again.sort, "m.accuracy");
  assert.deepEqual(
    [...again.where],
    [
      ["h.optimizer", { one: ["adam"] }],
      ["h.units", { low: 10, high: Infinity }],
    ],
  );
  assert.deepEqual(numbers(again), [2, 3]);
  assert.deepEqual(
    again.tableColumns.map(({ key }) => key),
    ["number", "state", "h.units"],
  );
});

test("trials are picked and compared in the address, and nonsense in it is left out", async () => {
  const view = await opened(3, "/jobs/3?pick=1,1,x,-4,2&compare=2,1&page=0&sort=h.nothing&where=%E0%A4%A");
  assert.deepEqual([...view.selected], [1, 2]);
  assert.deepEqual(view.compared, [2, 1]);
  assert.equal(view.page, 1);
  assert.deepEqual(numbers(view), [1, 2, 3], "by number");
  view.toggleSelected(2);
  view.compare([]);
  assert.match(location.search, /pick=1(&|$)/);
  assert.equal(location.search.includes("compare"), false);
});

test("hyperparameters that the best trial lacks come after its own", async () => {
  const space = ["template", "a/units", "b/rate", "b/depth"].map((name) => ({ name, kind: "int" }));
  const values = { template: [0, 1, 1], "a/units": [8, null, null], "b/rate": [null, 2, 3], "b/depth": [null, 4, 5] };
  server.answer = async () => json({ ...structuredClone(ANSWER), space, values });
  visit("/jobs/60");
  const view = viewOf(60);
  await new Promise((done) => view.store.addEventListener("change", done, { once: true }));
  const keys = view.tableColumns.map(({ key }) => key);
  assert.deepEqual(keys.slice(0, 7), ["number", "state", "score", "h.template", "h.b/rate", "h.b/depth", "h.a/units"]);
});

test("a trial of less than a second did not take none", async () => {
  const { store } = await opened(4, "/jobs/4");
  const [first, second, running] = store.column("seconds").values;
  assert.deepEqual([duration(first), duration(second), duration(running)], ["0.6 s", "1 min", "–"]);
});

test("points of running trials are followed, each execution by itself, without a request", async () => {
  const { store } = await opened(5, "/jobs/5");
  const timers = holdTimers();
  const reported = mock.fn();
  store.addEventListener("progress", reported);
  const asked = server.asked.length;
  const point = (cursor, trial, execution, epoch) => ({
    ...{ cursor, type: "metric", trial, execution, x: "epoch", points: [["val_loss", epoch, 0.2, 0]] },
  });
  const items = [point(1, 3, 1, 4), point(2, 3, 2, 3), point(3, 3, 1, 3), point(4, 2, 1, 9)];
  const frame = { type: "events", job: 5, cursor: 4, items };
  sockets.at(-1).dispatchEvent(new MessageEvent("message", { data: JSON.stringify(frame) }));
  assert.deepEqual(
    Object.values(store.under_way[3]).map(({ epochs }) => epochs),
    [4, 3],
  );
  assert.deepEqual(store.epochs, [5, 5, 7]);
  timers.run();
  assert.equal(reported.mock.callCount(), 1);
  assert.equal(server.asked.length, asked);
});

test("a burst of changes is one request for what has changed since the last", async () => {
  const { store } = await opened(6, "/jobs/6");
  const timers = holdTimers();
  const changed = { ...ANSWER, whole: false, number: [3], under_way: {}, metrics: { accuracy: [0.7], late: [1] } };
  for (const name of ["state", "by_hand", "restarts", "executions", "epochs"]) changed[name] = [1];
  for (const name of ["score", "std", "finished", "seconds"]) changed[name] = [0.1];
  server.answer = async () => json({ ...changed, values: { units: [32], optimizer: [1] } });
  server.asked.length = 0;
  store.scheduleLoad();
  store.scheduleLoad();
  timers.run();
  await new Promise((done) => store.addEventListener("change", done, { once: true }));
  assert.deepEqual(server.asked, ["/api/v1/jobs/6/trials/columns?after=7"]);
  assert.deepEqual(store.score, [0.4, 0.2, 0.1]);
  assert.deepEqual(store.metrics.late, [null, null, 1]);
  assert.deepEqual(store.ranked(store.column("score"), "min"), [2, 1, 0]);
});

test("one store serves all charts of a job", () => assert.equal(storeOf(6), viewOf(6).store));
