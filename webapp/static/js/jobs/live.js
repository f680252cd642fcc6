// One WebSocket for the whole tab. Each follower gets every event of its job once and in order; after a
// break the socket comes back with the cursor it had, so nothing is missed and nothing repeated.
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10000;

const followers = new Map(); // job → {cursor, listeners}
let socket = null;
let wait = FIRST_WAIT;

export function follow(job, cursor, listener) {
  const known = followers.get(job);
  if (known) {
    known.listeners.add(listener);
  } else {
    followers.set(job, { cursor, listeners: new Set([listener]) });
    if (socket?.readyState === WebSocket.OPEN) subscribe(job);
    else if (!socket) connect();
  }
  return () => unfollow(job, listener);
}

function unfollow(job, listener) {
  const known = followers.get(job);
  known?.listeners.delete(listener);
  if (known && known.listeners.size === 0) {
    followers.delete(job);
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ op: "unsubscribe", job }));
  }
}

function subscribe(job) {
  socket.send(JSON.stringify({ op: "subscribe", job, after: followers.get(job).cursor }));
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/ws/v1`);
  socket.addEventListener("open", () => {
    wait = FIRST_WAIT;
    tell("live");
    for (const job of followers.keys()) subscribe(job);
  });
  socket.addEventListener("message", (message) => take(JSON.parse(message.data)));
  socket.addEventListener("close", (event) => {
    socket = null;
    tell("away");
    if (event.code === 4401 || followers.size === 0) return;
    setTimeout(connect, wait * (0.5 + Math.random()));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  });
}

function take(frame) {
  if (frame.type !== "events") return;
  const follower = followers.get(frame.job);
  if (!follower) return;
  const fresh = frame.items.filter((event) => event.cursor > follower.cursor);
  follower.cursor = Math.max(follower.cursor, frame.cursor);
  if (fresh.length) for (const listener of follower.listeners) listener(fresh);
}

function tell(state) {
  document.documentElement.dataset.live = state;
}
