// Put into the page that `search_page.py` measures: when did the effect of the last input stand on the screen?
// Event Timing tells when the frame after an input was shown (in steps of 8 ms, from 16 ms on). A chart may be
// drawn in a later frame, so its own count of drawings is watched too.
globalThis.bench = (() => {
  const LEAST = 16;
  const INPUTS = new Set(["click", "pointerup", "keydown"]);
  const frame = () => new Promise(requestAnimationFrame);
  const pause = (time) => new Promise((done) => setTimeout(done, time));
  const drawing = () => document.querySelector(".ty-echart")?.parentElement.dataset.drawn ?? document.querySelector("ty-charts ty-curves")?.chart;
  let [input, shown, drawn, before] = [0, LEAST, 0, null];

  for (const name of INPUTS) addEventListener(name, (event) => event.isTrusted && (input = event.timeStamp), true);
  const note = (entries) => entries.forEach(({ name, duration }) => INPUTS.has(name) && (shown = Math.max(shown, duration)));
  const events = new PerformanceObserver((list) => note(list.getEntries()));
  events.observe({ type: "event", durationThreshold: LEAST });
  const slow = (entries) => entries.forEach(({ duration }) => (shown = Math.max(shown, duration)));
  const frames = new PerformanceObserver((list) => slow(list.getEntries()));
  frames.observe({ type: "long-animation-frame" }); // what moves under a dragging hand is no event of its own
  const changes = new MutationObserver(() => {
    if (drawing() !== before && !drawn) setTimeout(() => (drawn = performance.now())); // after that frame's painting
  });
  changes.observe(document, { subtree: true, childList: true, attributeFilter: ["data-drawn"] });

  return {
    begin() {
      frames.takeRecords();
      events.takeRecords();
      [shown, drawn, before] = [LEAST, 0, drawing()];
    },
    /** Milliseconds from the input since `begin` to the frame that shows its effect, a chart drawn anew if one is due. */
    async took(redrawn) {
      while (redrawn && !drawn) await frame();
      await frame();
      await frame();
      await pause(50); // what was shown is told a moment later
      slow(frames.takeRecords());
      note(events.takeRecords());
      return Math.max(shown, redrawn ? drawn - input : 0);
    },
  };
})();
