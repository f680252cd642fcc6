// The controls of a chart: the columns on its axes, logarithm, range, smoothing and outliers.

import { choice, el } from "../dom.js";
/** @import { AxisName, AxisOffer, Offer } from "./axes.js" */
/** @import { Option } from "./types.js" */
import { findAll } from "../elements.js";
import { hidesOutliers, rangeSetting, scaleOf, smoothingOf } from "./axes.js";
import { settings } from "./settings.js";

/** A choice with its options and the chosen one. @typedef {{ name: string, label: string, options: Option[], value: string }} Select */

const AXES = new Set(["x", "y", "z"]);

export class Controls {
  element = el("div", { class: "ty-chart-controls" });
  /** The choices and axes that the controls were made for. */
  made = "";
  /** Write the current settings into the controls. @type {(() => void)[]} */
  updates = [];

  /** @param {string} chart */
  constructor(chart) {
    this.chart = chart;
  }

  /** Remove the controls. */
  clear() {
    this.made = "";
    this.element.replaceChildren();
  }

  /**
   * Show these controls; existing ones are kept, so that the focus stays.
   * @param {Select[]} selects
   * @param {Offer} offer
   */
  draw(selects, offer) {
    const made = JSON.stringify([selects.map(({ name, label, options }) => [name, label, options]), offer]);
    if (this.made !== made) {
      this.made = made;
      this.updates = [];
      const held = this.fields.indexOf(/** @type {HTMLElement} */ (document.activeElement));
      this.element.replaceChildren(
        ...selects.map((select) => this.select(select)),
        ...(offer.scales ?? []).map((scale) => this.scale(scale)),
        ...(offer.smoothing ? [this.smoothing()] : []),
        ...(offer.outliers ? [this.outliers(offer.outliers)] : []),
        ...(offer.scales || offer.smoothing || offer.outliers ? [this.reset()] : []),
      );
      // A choice may change which controls there are; the choices come first and stay.
      if (held >= 0) this.fields[held]?.focus();
    }
    this.element.querySelectorAll("select").forEach((select, at) => {
      select.value = selects[at].value;
    });
    for (const update of this.updates) update();
  }

  get fields() {
    return findAll(this.element, "select, input, button", HTMLElement);
  }

  /** @param {Select} select */
  select({ name, label, options, value }) {
    // A range in the former values of this axis has no meaning for its new ones.
    const also = AXES.has(name) ? { [`${name}range`]: null } : {};
    return choice(label, options, value, (chosen) => settings.set(this.chart, { [name]: chosen, ...also }));
  }

  /** @param {AxisOffer} offer */
  scale({ axis, label, log, range }) {
    const part = el("fieldset", { class: "ty-axis" }, el("legend", {}, label));
    if (log) part.append(this.log(axis, label));
    if (range) part.append(...this.range(axis, label));
    return part;
  }

  /**
   * @param {AxisName} axis
   * @param {string} label
   */
  log(axis, label) {
    const box = el("input", { type: "checkbox", class: "form-check-input", "aria-label": `${label}, logarithmic` });
    box.addEventListener("change", () => settings.set(this.chart, { [`${axis}log`]: box.checked ? "on" : "off" }));
    this.updates.push(() => (box.checked = this.isLog(axis)));
    return el("label", { class: "form-check" }, box, el("span", { class: "form-check-label" }, "log"));
  }

  /** Which axes are logarithmic by default. @type {Partial<Record<AxisName, boolean>>} */
  logFirst = {};

  /** @param {AxisName} axis */
  isLog(axis) {
    return scaleOf(this.chart, axis).log ?? this.logFirst[axis] ?? false;
  }

  /**
   * @param {AxisName} axis
   * @param {string} label
   */
  range(axis, label) {
    const [from, to] = ["from", "to"].map((end) =>
      el("input", {
        class: "form-control",
        type: "number",
        step: "any",
        placeholder: end,
        "aria-label": `${label}, ${end}`,
      }),
    );
    const read = (/** @type {HTMLInputElement} */ input) => (input.value === "" ? undefined : Number(input.value));
    const change = () => {
      const [low, high] = [read(from), read(to)];
      const upsideDown = low !== undefined && high !== undefined && low >= high;
      to.setCustomValidity(upsideDown ? `This must be greater than ${low}.` : "");
      if (to.reportValidity()) settings.set(this.chart, { [`${axis}range`]: rangeSetting(low, high) });
    };
    for (const input of [from, to]) input.addEventListener("change", change);
    this.updates.push(() => {
      const { low, high } = scaleOf(this.chart, axis);
      if (document.activeElement !== from) from.value = low === undefined ? "" : String(low);
      if (document.activeElement !== to) to.value = high === undefined ? "" : String(high);
    });
    return [from, el("span", { "aria-hidden": "true" }, "–"), to];
  }

  smoothing() {
    const slider = el("input", {
      class: "form-range",
      type: "range",
      min: "0",
      max: "0.99",
      step: "0.01",
      "aria-label": "Smoothing",
    });
    const shown = el("output", { class: "ty-num" });
    for (const type of ["input", "change"])
      slider.addEventListener(type, () =>
        settings.set(this.chart, { smooth: slider.value === "0" ? null : slider.value }, type === "change"),
      );
    this.updates.push(() => {
      slider.value = String(smoothingOf(this.chart));
      shown.value = slider.value === "0" ? "off" : slider.value;
    });
    return el("fieldset", { class: "ty-axis" }, el("legend", {}, "Smoothing"), slider, shown);
  }

  /** @param {NonNullable<Offer["outliers"]>} first */
  outliers(first) {
    const box = el("input", { type: "checkbox", class: "form-check-input" });
    box.addEventListener("change", () => settings.set(this.chart, { outliers: box.checked ? "hidden" : "drawn" }));
    this.updates.push(() => (box.checked = hidesOutliers(this.chart, first)));
    const title = "Values beyond three times the distance between the quartiles";
    return el(
      "fieldset",
      { class: "ty-axis", title },
      el("legend", {}, "Outliers"),
      el("label", { class: "form-check" }, box, el("span", { class: "form-check-label" }, "leave out")),
    );
  }

  reset() {
    const button = el("button", { type: "button", class: "btn btn-sm" }, "Reset");
    button.addEventListener("click", () => settings.reset(this.chart));
    this.updates.push(() => (button.disabled = !settings.values.get(this.chart)?.size));
    return el("div", { class: "ty-axis-reset" }, button);
  }
}
