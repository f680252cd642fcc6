// <ty-drawing>: the drawing of a model's layers. Scrolling moves it; buttons and the keys + - 0 change its size. A click on a
// box with + or − fetches the page with that box expanded or collapsed, and replaces the drawing alone.

import { el, icon } from "../shared/dom.js";
import { find } from "../shared/elements.js";

const SMALLEST = 0.25;
const LARGEST = 3;
const STEP = 1.25;

class Drawing extends HTMLElement {
  scale = 1;
  /** @type {HTMLElement} */
  view;
  percent = el("output", { class: "ty-num ty-small", "aria-live": "polite" });

  connectedCallback() {
    if (this.querySelector(".ty-drawing-tools")) return;
    this.view = find(this, ".ty-drawing-view", HTMLElement);
    this.prepend(this.tools());
    this.resize(1);
    this.addEventListener("keydown", (event) => this.key(event));
    this.addEventListener("click", (event) => this.toggle(event));
  }

  tools() {
    /** @type {(name: string, label: string, change: () => void) => HTMLElement} */
    const button = (name, label, change) => {
      const made = el("button", { type: "button", class: "btn btn-sm" }, icon(name), label);
      made.addEventListener("click", change);
      return made;
    };
    return el(
      "div",
      { class: "ty-drawing-tools", role: "group", "aria-label": "Size of the drawing" },
      button("zoom-out", "Smaller", () => this.resize(this.scale / STEP)),
      this.percent,
      button("zoom-in", "Larger", () => this.resize(this.scale * STEP)),
      button("arrows-maximize", "Fit width", () => this.fit()),
      el("span", { class: "text-secondary ty-small d-none d-md-inline" }, "keys: + − 0 and arrows"),
    );
  }

  get picture() {
    return find(this, "svg.ty-architecture", SVGSVGElement);
  }

  /** Keep the middle of the view in place while the size changes. @param {number} wanted */
  resize(wanted) {
    const { view, picture } = this;
    const before = this.scale;
    this.scale = Math.min(Math.max(wanted, SMALLEST), LARGEST);
    const { width, height } = picture.viewBox.baseVal;
    const [x, y] = [view.scrollLeft + view.clientWidth / 2, view.scrollTop + view.clientHeight / 2];
    picture.setAttribute("width", String(width * this.scale));
    picture.setAttribute("height", String(height * this.scale));
    const ratio = this.scale / before;
    if (ratio !== 1) view.scrollTo(x * ratio - view.clientWidth / 2, y * ratio - view.clientHeight / 2);
    this.percent.textContent = `${Math.round(this.scale * 100)} %`;
  }

  fit() {
    this.resize(this.view.clientWidth / this.picture.viewBox.baseVal.width);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") this.resize(this.scale * STEP);
    else if (event.key === "-") this.resize(this.scale / STEP);
    else if (event.key === "0") this.resize(1);
    else return;
    event.preventDefault();
  }

  /** @param {MouseEvent} event */
  async toggle(event) {
    const link = event.target instanceof Element ? event.target.closest("a[data-toggle]") : null;
    if (!(link instanceof SVGAElement) || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const address = new URL(link.href.baseVal, location.href);
    const response = await fetch(address).catch(() => null);
    const fresh = response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html") : null;
    const picture = fresh?.querySelector("svg.ty-architecture");
    if (!picture) {
      location.assign(address);
      return;
    }
    const { toggle } = link.dataset;
    this.picture.replaceWith(document.importNode(picture, true));
    this.resize(this.scale);
    history.replaceState(null, "", address);
    find(this, `a[data-toggle="${toggle}"]`, SVGAElement).focus({ preventScroll: true });
  }
}

customElements.define("ty-drawing", Drawing);
