// The steps: one section at a time, named in the address, opened by links, buttons or Alt + arrow. Each step that is opened
// is an entry of the browser's history, so that Back leads to the step before.
import { closest, find, findAll } from "../../shared/elements.js";

export class Steps {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.links = findAll(form, "[data-step]", HTMLElement);
    this.sections = findAll(form, "[data-section]", HTMLElement);
    form.addEventListener("click", (event) => this.onClick(event));
    form.addEventListener("keydown", (event) => this.onKey(event));
    // Also after a change of the address by hand. Without a hash it is the step that the page began with.
    addEventListener("popstate", () => this.open(location.hash.slice(1) || this.sections[0].id, { keep: false }));
    this.open(location.hash.slice(1) || this.sections[0].id, { focus: false, keep: false });
  }

  get current() {
    return Math.max(
      this.sections.findIndex((section) => !section.hidden),
      0,
    );
  }

  /**
   * @param {string} id
   * @param {{ focus?: boolean, keep?: boolean }} [options]
   */
  open(id, { focus = true, keep = true } = {}) {
    const section = this.sections.find((one) => one.id === id);
    if (!section) return;
    const moves = section !== this.sections[this.current];
    for (const one of this.sections) one.hidden = one !== section;
    for (const link of this.links) {
      if (link.dataset.step === id) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    }
    this.links.find((link) => link.dataset.step === id)?.scrollIntoView({ block: "nearest", inline: "center" });
    if (keep && moves) history.pushState(null, "", `#${id}`);
    if (focus) find(section, "h2", HTMLElement).focus({ preventScroll: true });
    if (focus) scrollTo({ top: 0 });
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const link = closest(event, "[data-step]");
    if (link?.dataset.step) {
      event.preventDefault();
      this.open(link.dataset.step);
    }
    const walk = closest(event, "[data-walk]");
    if (walk) this.walk(Number(walk.dataset.walk));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!event.altKey || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    this.walk(event.key === "ArrowDown" ? 1 : -1);
  }

  /** @param {number} by */
  walk(by) {
    const next = this.sections[this.current + by];
    if (next) this.open(next.id);
  }
}
