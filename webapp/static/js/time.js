// Keeps relative times true while the page stays open. Says the same as `words.relative` on the server.
const STEPS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];
const EVERY = 15000;

export function relative(seconds) {
  const size = Math.abs(seconds);
  if (size < 10) return "just now";
  const [step, unit] = STEPS.find(([length]) => size >= length);
  const text = `${Math.floor(size / step)} ${unit}`;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

export function refresh(within = document) {
  for (const element of within.querySelectorAll("time[data-relative]")) {
    const text = relative((Date.now() - Date.parse(element.dateTime)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

setInterval(refresh, EVERY);
