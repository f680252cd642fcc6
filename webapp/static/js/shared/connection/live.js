// One WebSocket for the whole tab. Each follower gets every event of its job once and in order: after a broken connection
// the socket subscribes again from the last cursor, so no event is missed or repeated.
import { reportLive } from "../connection/notice.js";
import { answers, ask } from "../connection/server.js";
import { askLogin, isLoggedIn } from "../connection/session.js";
import { findAll } from "../elements.js";

const FIRST_WAIT = 500;
const REPORTED_AFTER = 2000; // most connections are open again by then
const LONGEST_WAIT = 10000;

/** @typedef {"metric" | "log" | "state" | "trial" | "execution" | "progress" | "phase" | "attempt" | "artifact" | "warning" | "checkpoint" | "resumed"} Type */
/**
 * An event of a job. Which fields beyond `cursor`, `type` and `time` it has depends on its type.
 * @typedef {{
 *   cursor: number, type: Type, time: number, job: number, attempt: number, trial: number, execution: number,
 *   x: string, points: [name: string, x: number, value: number | null, time: number][],
 *   level: string, line: string, source: string,
 * }} LiveEvent
 */
/** @typedef {(events: LiveEvent[]) => void} Listener */

/** @type {Map<number, { cursor: number, listeners: Set<Listener> }>} */
const followers = new Map();
/** @type {WebSocket | null} */
let socket = null;
let wait = FIRST_WAIT;
let retry = 0;
let report = 0;
// Codes of connections that are not opened again by themselves.
const LOGGED_OUT = 4401;
const TOO_MANY = 4429;

/** Return the cursor that the page was rendered at. */
export function cursorOfPage() {
  return Number(findAll(document, "[data-cursor]", HTMLElement)[0]?.dataset.cursor ?? 0);
}

/**
 * Call the listener with every event of a job after the cursor; the returned function removes the listener.
 * @param {number} job
 * @param {number} cursor
 * @param {Listener} listener
 */
export function follow(job, cursor, listener) {
  const known = followers.get(job);
  if (known) {
    known.listeners.add(listener);
  } else {
    followers.set(job, { cursor, listeners: new Set([listener]) });
    if (socket?.readyState === WebSocket.OPEN) subscribe(socket, job);
    else if (!socket) connect();
  }
  return () => unfollow(job, listener);
}

/**
 * @param {number} job
 * @param {Listener} listener
 */
function unfollow(job, listener) {
  const known = followers.get(job);
  known?.listeners.delete(listener);
  if (known && known.listeners.size === 0) {
    followers.delete(job);
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ op: "unsubscribe", job }));
  }
}

/**
 * @param {WebSocket} socket
 * @param {number} job
 */
function subscribe(socket, job) {
  socket.send(JSON.stringify({ op: "subscribe", job, after: followers.get(job)?.cursor }));
}

function connect() {
  clearTimeout(retry); // otherwise it would open a second connection
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const opened = new WebSocket(`${scheme}://${location.host}/ws/v1`);
  socket = opened;
  opened.addEventListener("open", () => {
    wait = FIRST_WAIT;
    clearTimeout(report);
    report = 0;
    reportLive("");
    for (const job of followers.keys()) subscribe(opened, job);
  });
  opened.addEventListener("message", (message) => dispatch(JSON.parse(message.data)));
  opened.addEventListener("close", async ({ code, reason }) => {
    socket = null;
    if (code === TOO_MANY) {
      reportLive(`${reason} Reload this page afterwards.`);
      return;
    }
    if (code === LOGGED_OUT && !(await askLogin())) return;
    if (socket || followers.size === 0) return;
    ask();
    report ||= setTimeout(reportInterruption, REPORTED_AFTER);
    retry = setTimeout(connect, wait * (0.5 + Math.random()));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  });
}

function reportInterruption() {
  report = 0;
  if (answers() && socket?.readyState !== WebSocket.OPEN) {
    reportLive("The connection is opened again by itself; this page then shows what happened meanwhile.");
  }
}

// A server that is back, and a new login, are not waited for.
for (const type of ["ty:server", "ty:session"])
  document.addEventListener(type, () => {
    if (answers() && isLoggedIn() && !socket && followers.size > 0) connect();
  });

/** @param {{ type: string, job: number, cursor: number, items: LiveEvent[] }} frame */
function dispatch(frame) {
  if (frame.type !== "events") return;
  const follower = followers.get(frame.job);
  if (!follower) return;
  const fresh = frame.items.filter((event) => event.cursor > follower.cursor);
  follower.cursor = Math.max(follower.cursor, frame.cursor);
  if (fresh.length) for (const listener of follower.listeners) listener(fresh);
}
