// <ty-grid rows columns top for="textarea id">: a small picture to draw with pointer or keyboard.
// The values live in the textarea as nested lists; drawing writes them there, typing there redraws.
import { byId } from "../shared/elements.js";

class Grid extends HTMLElement {
  rows = 0;
  columns = 0;
  top = 1;
  ink = 0;
  deep = false;
  /** @type {HTMLButtonElement[]} */
  cells = [];
  /** @type {number[] | null} */
  values = null;
  /** @type {HTMLTextAreaElement} */
  field;

  connectedCallback() {
    this.rows = Number(this.getAttribute("rows"));
    this.columns = Number(this.getAttribute("columns"));
    this.top = Number(this.getAttribute("top")) || 1;
    this.field = byId(this.getAttribute("for") ?? "", HTMLTextAreaElement);
    this.setAttribute("role", "grid");
    this.setAttribute("aria-label", "Drawing: arrow keys move, space adds ink, delete removes it");
    this.build();
    this.read();
    this.field.addEventListener("input", () => this.read());
    this.addEventListener("pointerdown", (event) => this.press(event));
    this.addEventListener("pointermove", (event) => this.drag(event));
    this.addEventListener("keydown", (event) => this.key(event));
  }

  build() {
    this.cells = [];
    for (let r = 0; r < this.rows; r += 1) {
      const row = document.createElement("div");
      row.setAttribute("role", "row");
      for (let c = 0; c < this.columns; c += 1) {
        const cell = document.createElement("button");
        cell.type = "button";
        cell.tabIndex = this.cells.length ? -1 : 0;
        cell.setAttribute("role", "gridcell");
        cell.dataset.index = String(this.cells.length);
        row.append(cell);
        this.cells.push(cell);
      }
      this.append(row);
    }
    this.before(this.tools());
  }

  tools() {
    const bar = document.createElement("div");
    bar.className = "ty-grid-tools";
    const clear = document.createElement("button");
    clear.type = "button";
    clear.className = "btn btn-sm";
    clear.textContent = "Clear";
    clear.addEventListener("click", () => {
      this.values?.fill(0);
      this.write();
    });
    bar.append(clear);
    return bar;
  }

  read() {
    /** @type {number[]} */
    let flat;
    try {
      flat = [JSON.parse(this.field.value)].flat(Infinity).map(Number);
    } catch {
      return;
    }
    if (flat.length !== this.cells.length || flat.some((value) => !Number.isFinite(value))) return;
    this.values = flat;
    this.deep = /^\s*\[\s*\[\s*\[/.test(this.field.value);
    this.paint();
  }

  write() {
    if (!this.values) return;
    const rows = [];
    for (let r = 0; r < this.rows; r += 1) {
      const row = this.values.slice(r * this.columns, (r + 1) * this.columns);
      rows.push(this.deep ? row.map((value) => [value]) : row);
    }
    this.field.value = JSON.stringify(rows);
    this.paint();
  }

  paint() {
    const { values } = this;
    if (!values) return;
    this.cells.forEach((cell, i) => {
      const share = Math.round((100 * values[i]) / this.top);
      cell.style.setProperty("--ink", `${Math.max(0, Math.min(100, share))}%`);
      cell.setAttribute(
        "aria-label",
        `row ${Math.floor(i / this.columns) + 1}, column ${(i % this.columns) + 1}: ${share} %`,
      );
    });
  }

  /**
   * @param {number} index
   * @param {number} value
   */
  set(index, value) {
    if (!this.values || this.values[index] === value) return;
    this.values[index] = value;
    this.write();
  }

  /** @param {PointerEvent} event */
  press(event) {
    const index = indexOf(event.target);
    if (index === null || !this.values) return;
    this.ink = event.button === 2 || event.shiftKey || this.values[index] >= this.top ? 0 : this.top;
    this.set(index, this.ink);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!event.buttons) return;
    const under = document.elementFromPoint(event.clientX, event.clientY);
    const index = indexOf(under);
    if (index !== null && this.contains(under)) this.set(index, this.ink);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const here = indexOf(event.target);
    if (here === null || !this.values) return;
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
    const step = steps[event.key];
    if (step) this.focusOn(here + step);
    else if (event.key === " ") this.set(here, Math.min(this.top, this.values[here] + this.top / 4));
    else if (event.key === "Delete" || event.key === "Backspace") this.set(here, 0);
    else return;
    event.preventDefault();
  }

  /** @param {number} index */
  focusOn(index) {
    const cell = this.cells[index];
    if (!cell) return;
    this.cells.forEach((other) => {
      other.tabIndex = -1;
    });
    cell.tabIndex = 0;
    cell.focus();
  }
}

/**
 * Return which cell an element is, or null.
 * @param {EventTarget | null} element
 */
function indexOf(element) {
  return element instanceof HTMLButtonElement && element.dataset.index !== undefined
    ? Number(element.dataset.index)
    : null;
}

customElements.define("ty-grid", Grid);
