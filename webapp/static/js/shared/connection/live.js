// One WebSocket for the whole tab. Each follower gets every event of its job once and in order: after a broken connection
// the socket subscribes again from the last cursor, so no event is missed or repeated. Where a proxy lets no WebSocket
// through, each followed job has a stream of server-sent events instead.
import { address } from "../addresses.js";
import { reportLive } from "../connection/notice.js";
import { answers, ask } from "../connection/server.js";
import { askLogin, isLoggedIn } from "../connection/session.js";
import { findAll } from "../elements.js";
import { addressOf, refusalOf, Stream } from "./streams.js";

const FIRST_WAIT = 500;
const REPORTED_AFTER = 2000; // most connections are open again by then
const LONGEST_WAIT = 10000;
const LONGEST_OPENING = 5000; // a proxy may answer nothing at all
const BLOCKED_AFTER = 2; // sockets in a row that did not open though the server answers
const BLOCKED = "ty-no-websocket"; // known until the tab is closed

/** @typedef {"metric" | "log" | "state" | "trial" | "execution" | "progress" | "phase" | "attempt" | "artifact" | "warning" | "checkpoint" | "resumed" | "revised"} Type */
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
/** @type {Map<number, Stream>} */
const streams = new Map();
let isBlocked = sessionStorage.getItem(BLOCKED) !== null;
let unopened = 0;
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
    if (isBlocked) openStream(job);
    else if (socket?.readyState === WebSocket.OPEN) subscribe(socket, job);
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
    closeStream(job);
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
  if (isBlocked) {
    openStreams();
    return;
  }
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const opened = new WebSocket(`${scheme}://${location.host}${address("/ws/v1")}`);
  const opening = setTimeout(() => opened.close(), LONGEST_OPENING);
  socket = opened;
  let hasOpened = false;
  opened.addEventListener("open", () => {
    clearTimeout(opening);
    hasOpened = true;
    unopened = 0;
    reportBack();
    for (const job of followers.keys()) subscribe(opened, job);
  });
  opened.addEventListener("message", (message) => dispatch(JSON.parse(message.data)));
  opened.addEventListener("close", async ({ code, reason }) => {
    clearTimeout(opening);
    socket = null;
    if (code === TOO_MANY) {
      reportLive(`${reason} Reload this page afterwards.`);
      return;
    }
    if (code === LOGGED_OUT && !(await askLogin())) return;
    if (socket || followers.size === 0) return;
    const isUp = await ask();
    if (socket || followers.size === 0) return;
    if (isUp && !hasOpened) unopened += 1;
    if (unopened >= BLOCKED_AFTER) useStreams();
    retryLater();
  });
}

function useStreams() {
  isBlocked = true;
  wait = FIRST_WAIT;
  sessionStorage.setItem(BLOCKED, "");
}

function retryLater() {
  report ||= setTimeout(reportInterruption, REPORTED_AFTER);
  clearTimeout(retry);
  retry = setTimeout(connect, wait * (0.5 + Math.random()));
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

function reportBack() {
  wait = FIRST_WAIT;
  clearTimeout(report);
  report = 0;
  reportLive("");
}

function openStreams() {
  for (const job of followers.keys()) openStream(job);
}

/** @param {number} job */
function openStream(job) {
  // A browser opens few connections to a server that has HTTP 1.1 only: hidden tabs leave theirs to others.
  if (streams.has(job) || document.visibilityState === "hidden") return;
  const stream = new Stream(job, followers.get(job)?.cursor ?? 0, {
    opened: reportBack,
    interrupted: () => {
      report ||= setTimeout(reportInterruption, REPORTED_AFTER);
    },
    ended: async () => {
      streams.delete(job);
      const refusal = await refusalOf(addressOf(job, 0));
      if (refusal) reportLive(`${refusal} Reload this page afterwards.`);
      else if ((await askLogin()) && followers.has(job)) retryLater();
    },
    events: (items) => dispatch({ type: "events", job, cursor: items.at(-1)?.cursor ?? 0, items }),
  });
  streams.set(job, stream);
}

/** @param {number} job */
function closeStream(job) {
  streams.get(job)?.close();
  streams.delete(job);
}

document.addEventListener("visibilitychange", () => {
  if (!isBlocked) return;
  if (document.visibilityState === "visible") openStreams();
  else for (const job of [...streams.keys()]) closeStream(job);
});

/** Return whether events arrive. */
const isLive = () =>
  isBlocked ? [...followers.keys()].every((job) => streams.get(job)?.isOpen()) : socket?.readyState === WebSocket.OPEN;

function reportInterruption() {
  report = 0;
  if (answers() && !isLive()) {
    reportLive("The connection is opened again by itself; this page then shows what happened meanwhile.");
  }
}

// A server that is back, and a new login, are not waited for.
for (const type of ["ty:server", "ty:session"])
  document.addEventListener(type, () => {
    if (answers() && isLoggedIn() && !socket && !isLive() && followers.size > 0) connect();
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
