// The requests of an endpoint as all charts of its page share them: the range in the address, and late answers.

import "./page.js";
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { TrafficStore } from "../../../webapp/static/js/registry/endpoints/store.js";
import { json, server, visit } from "./page.js";

const ANSWER = { total: { versions: { 0: 2, 3: 5 } }, served: [{ version: 2 }], points: [], step_seconds: 10 };

function storeAt(address) {
  visit(address);
  const store = new TrafficStore("digits");
  const changes = mock.fn();
  store.addEventListener("change", changes);
  return { store, changes };
}

test("no request follows one that is answered after the store has stopped", async () => {
  const { store, changes } = storeAt("/endpoints/digits");
  let answer = () => {};
  server.answer = () => new Promise((done) => (answer = done));
  const loading = store.load();
  store.stop();
  server.asked.length = 0;
  answer(json(ANSWER));
  await loading;
  visit("/endpoints/digits?range=1d");
  assert.equal(changes.mock.callCount(), 0);
  assert.equal(store.data, null);
  assert.deepEqual(server.asked, []);
});

test("the range and the version are in the address, with one step back each", async () => {
  const { store } = storeAt("/endpoints/digits?range=decade&version=-1&ax.time.xrange=1..2");
  assert.deepEqual([store.range, store.version], ["1h", ""]);
  server.answer = async () => json(ANSWER);
  store.start();
  store.choose({ range: "15m" });
  store.choose({ version: "3" });
  assert.equal(location.search, "?range=15m&version=3");
  assert.match(server.asked.at(-1), /^\/api\/v1\/endpoints\/digits\/traffic\?range=15m&version=3$/);
  visit("/endpoints/digits?range=15m");
  assert.equal(store.version, "");
  store.stop();
});

test("the answer to an older request is dropped, and a failed one is named", async () => {
  const { store, changes } = storeAt("/endpoints/digits");
  const answers = [];
  server.answer = () => new Promise((done) => answers.push(done));
  const loads = [store.load(), store.load()];
  answers[1](json(ANSWER));
  answers[0](json({ ...ANSWER, total: { versions: { 9: 1 } } }));
  await Promise.all(loads);
  assert.deepEqual([...store.known], [3, 2]);
  assert.equal(changes.mock.callCount(), 1);
  server.answer = async () => ({ ok: false, status: 503 });
  await store.load();
  assert.equal(store.problem, "the server answered 503");
  assert.deepEqual(store.data, ANSWER, "the last figures stay");
});
