// A job's or trial's page: its head and tables are asked for anew when something about them changed.
import "./curves.js";
import "./history.js";
import "./log.js";
import "../trials/table.js";
import { refresh } from "../time.js";
import { follow } from "./live.js";

const QUIET = 600; // one refresh for a burst of events
const STEADY = 5000; // time left moves even when nothing happens
const TELLING = new Set(["state", "trial", "execution", "progress", "attempt", "artifact", "warning", "checkpoint"]);
const LIVE_TABS = new Set(["overview", "artifacts", "attempts", "trial"]);

const head = document.getElementById("job-head");
const body = document.getElementById("job-body");
let timer = null;
let structural = false;

// What somebody is about to press, or is asked about, is not drawn anew.
function inUse(element) {
  return document.querySelector("dialog[open]") || element.contains(document.activeElement);
}

async function piece(element, address) {
  if (inUse(element)) return false;
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (!answer.ok) return false;
  const fresh = document.createElement("template");
  fresh.innerHTML = await answer.text();
  if (inUse(element)) return false;
  keep(element, fresh.content);
  element.replaceChildren(fresh.content);
  refresh(element);
  return true;
}

// Charts follow the job by themselves: the ones on the page stay, with their zoom and their points.
// A form stays as well, with what was typed into it and what was said of that.
function keep(element, fresh) {
  for (const form of element.querySelectorAll("[data-keep]")) fresh.querySelector(`#${form.id}`)?.replaceWith(form);
  for (const chart of element.querySelectorAll("ty-curves, ty-history, ty-trials, ty-compare")) {
    if (chart.parentElement.closest("ty-compare")) continue; // stays with what it is in
    const key = `${chart.localName}[job="${chart.getAttribute("job")}"]${chart.hasAttribute("names") ? `[names="${CSS.escape(chart.getAttribute("names"))}"]` : ""}`;
    fresh.querySelector(key)?.replaceWith(chart);
  }
}

async function renew() {
  timer = null;
  if (inUse(head)) return schedule();
  const changed = structural;
  structural = false;
  const shown = changed && body && LIVE_TABS.has(body.dataset.tab);
  const drawn = (await piece(head, head.dataset.live)) && (!shown || (await piece(body, body.dataset.liveBody)));
  structural ||= changed && !drawn; // the next renewal makes up for it
  return undefined;
}

function schedule(delay = QUIET) {
  if (!timer) timer = setTimeout(renew, delay);
}

if (head) {
  follow(Number(head.dataset.job), Number(head.dataset.cursor), (events) => {
    if (!events.some((event) => TELLING.has(event.type))) return;
    structural ||= events.some((event) => event.type !== "progress");
    schedule();
  });
  if (!head.dataset.final) setInterval(() => document.visibilityState === "visible" && schedule(0), STEADY);
}
for (const target of document.querySelectorAll("[data-json]")) {
  const source = document.getElementById(target.dataset.json);
  target.textContent = JSON.stringify(JSON.parse(source.textContent), null, 2);
}
