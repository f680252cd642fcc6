// The page of a job or trial: its head and tables are fetched again when they changed, and patched.
import "./curves.js";
import "../search/history.js";
import "./log.js";
import "../search/table.js";
import { follow } from "../shared/connection/live.js";
import { fetchPart } from "../shared/connection/part.js";
import { answers } from "../shared/connection/server.js";
import { isLoggedIn } from "../shared/connection/session.js";
import { find, findAll } from "../shared/elements.js";
import { patch } from "../shared/patch.js";

const QUIET = 600; // one refresh for a burst of events
const PENDING = 1500; // until a part that the server computes is asked for again
const STEADY = 5000; // time left moves even when nothing happens
const REFRESH_EVENTS = new Set([
  "state",
  "trial",
  "execution",
  "progress",
  "phase",
  "attempt",
  "artifact",
  "warning",
  "checkpoint",
  "resumed",
]);
const LIVE_TABS = new Set(["overview", "artifacts", "attempts", "trial"]);

const head = document.getElementById("job-head");
const body = document.getElementById("job-body");
let timer = 0;
let isRefreshing = false;
let structural = false;

/**
 * Bring a part of the page up to date; return whether the server has answered.
 * @param {HTMLElement} element
 * @param {string} address
 */
async function updatePart(element, address) {
  if (!answers() || !isLoggedIn()) return false;
  const response = await fetchPart(address).catch(() => null);
  if (!response?.ok) return false;
  patch(element, await response.text());
  defineCharts();
  return true;
}

/**
 * Return whether the server draws parts of a tab that change. The charts of a training appear with its first points.
 * @param {string} tab
 */
const isLive = (tab) => LIVE_TABS.has(tab) || (tab === "charts" && !document.querySelector("ty-charts"));

/** Load the grid of charts of a training, on pages that have one. */
function defineCharts() {
  if (document.querySelector("ty-run-charts")) import("./run-charts.js");
}

/** @param {HTMLElement} head */
async function refreshPage(head) {
  timer = 0;
  // One at a time: a server that is slow would get more and more requests.
  if (isRefreshing) {
    schedule(head);
    return;
  }
  isRefreshing = true;
  try {
    await refreshParts(head);
  } finally {
    isRefreshing = false;
  }
  awaitPending(head);
}

/**
 * Draw the head again, and the body if more than the progress has changed.
 * @param {HTMLElement} head
 */
async function refreshParts(head) {
  const changed = structural;
  structural = false;
  const { live } = head.dataset;
  const { tab, liveBody } = body?.dataset ?? {};
  const drawn =
    live !== undefined &&
    (await updatePart(head, live)) &&
    (!changed || !body || !isLive(tab ?? "") || !liveBody || (await updatePart(body, liveBody)));
  structural ||= changed && !drawn; // the next refresh updates the body
}

/**
 * Draw the body again while the server computes a part of it, which no event announces.
 * @param {HTMLElement} head
 */
function awaitPending(head) {
  if (!document.querySelector("#job-body [data-pending]")) return;
  structural = true;
  schedule(head, PENDING);
}

/**
 * @param {HTMLElement} head
 * @param {number} delay
 */
function schedule(head, delay = QUIET) {
  if (!timer) timer = setTimeout(() => refreshPage(head), delay);
}

if (head) {
  follow(Number(head.dataset.job), Number(head.dataset.cursor), (events) => {
    if (!events.some((event) => REFRESH_EVENTS.has(event.type))) return;
    structural ||= events.some((event) => event.type !== "progress" && event.type !== "phase");
    schedule(head);
  });
  awaitPending(head);
  for (const type of ["ty:server", "ty:session"])
    document.addEventListener(type, () => {
      structural = true; // what changed meanwhile is unknown
      if (answers()) schedule(head, 0);
    });
  setInterval(() => {
    const isOver = head.querySelector("[data-final]") !== null;
    if (!isOver && document.visibilityState === "visible") schedule(head, 0);
  }, STEADY);
}
defineCharts();
for (const target of findAll(document, "[data-json]", HTMLElement)) {
  const source = find(document, `#${target.dataset.json}`, HTMLElement);
  target.textContent = JSON.stringify(JSON.parse(source.textContent), null, 2);
}
