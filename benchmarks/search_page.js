// Added to the page that `search_page.py` measures: finds when the effect of the last input became visible.
// Event Timing reports the frame after an input (in steps of 8 ms, from 16 ms on). A chart may be drawn in a
// later frame, so its count of drawings is observed too.
globalThis.bench = (() => {
  const LEAST = 16;
  const LONGEST = 10_000;
  const INPUTS = new Set(["click", "pointerup", "keydown"]);
  const frame = () => new Promise(requestAnimationFrame);
  const pause = (time) => new Promise((done) => setTimeout(done, time));
  const drawing = () =>
    document.querySelector(".ty-enlarged .ty-echart")?.parentElement.dataset.drawn ??
    document.querySelector(".ty-enlarged ty-curves")?.chart;
  const waiting = () => document.querySelector(".ty-tile[aria-busy=true]");
  let [input, shown, drawn, before] = [0, LEAST, 0, null];

  for (const name of INPUTS) addEventListener(name, (event) => event.isTrusted && (input = event.timeStamp), true);
  const note = (entries) => entries.forEach(({ name, duration }) => INPUTS.has(name) && (shown = Math.max(shown, duration)));
  const events = new PerformanceObserver((list) => note(list.getEntries()));
  events.observe({ type: "event", durationThreshold: LEAST });
  const slow = (entries) => entries.forEach(({ duration }) => (shown = Math.max(shown, duration)));
  const frames = new PerformanceObserver((list) => slow(list.getEntries()));
  frames.observe({ type: "long-animation-frame" }); // movement during a drag is not reported as an event
  const changes = new MutationObserver(() => {
    if (drawing() !== before && !drawn) setTimeout(() => (drawn = performance.now())); // after that frame has been painted
  });
  changes.observe(document, { subtree: true, childList: true, attributeFilter: ["data-drawn"] });

  return {
    begin() {
      frames.takeRecords();
      events.takeRecords();
      [shown, drawn, before] = [LEAST, 0, drawing()];
    },
    /** Milliseconds from the input since `begin` until every chart on the screen is drawn again. */
    async followed() {
      while (waiting()) await frame();
      await frame();
      return performance.now() - input;
    },
    /** Milliseconds from the input since `begin` to the frame that shows its effect, including a redrawn chart if one is expected. */
    async took(redrawn) {
      const late = performance.now() + LONGEST;
      while (redrawn && !drawn) {
        if (performance.now() > late) throw new Error("the chart was not drawn again");
        await frame();
      }
      await frame();
      await frame();
      await pause(50); // entries are reported a moment later
      slow(frames.takeRecords());
      note(events.takeRecords());
      return Math.max(shown, redrawn ? drawn - input : 0);
    },
  };
})();
