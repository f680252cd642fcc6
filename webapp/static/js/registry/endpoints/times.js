// Writes moments in the time zone of the browser, in 24 hours.

/** @import uPlot from "uplot" */

const DAY = 86_400;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
const dayOf = (/** @type {Date} */ date) => `${date.getDate()} ${MONTHS[date.getMonth()]}`;
const isToday = (/** @type {Date} */ date) => date.toDateString() === new Date().toDateString();

/**
 * Return a moment in words: with seconds only if points are shorter than a minute, with the day unless it is today.
 * @param {number} at seconds since 1970
 * @param {number} step of the points
 * @param {boolean} timeOnly
 * @param {boolean} withDay
 */
export function momentWords(at, step, timeOnly = false, withDay = false) {
  const date = new Date(at * 1000);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}${step < 60 ? `:${two(date.getSeconds())}` : ""}`;
  return !timeOnly && (withDay || !isToday(date)) ? `${dayOf(date)} ${time}` : time;
}

/**
 * Return the labels of marks on a time axis: the day where one begins, else the time.
 * @param {uPlot} _chart
 * @param {number[]} marks seconds since 1970
 */
export function timeMarks(_chart, marks) {
  const step = marks.length > 1 ? marks[1] - marks[0] : DAY;
  return marks.map((mark) => {
    const date = new Date(mark * 1000);
    const isMidnight = !date.getHours() && !date.getMinutes() && !date.getSeconds();
    return step >= DAY / 2 || isMidnight ? dayOf(date) : momentWords(mark, step, true);
  });
}
