// The mesh: its axes as rows, its drawing, and the layout of every variable.

/** @import { Origin, Plan, Rule, Variable } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { byId, closest, find, findAll } from "../../shared/elements.js";
import { grouped } from "../../shared/words.js";

const SVG = "http://www.w3.org/2000/svg";
const CELL = 46;
const GAP = 6;

/** @typedef {{ name: string, size: number | string, batch: boolean }} Axis */

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function draw(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

/**
 * @param {string} text
 * @param {string} css
 */
const cell = (text, css = "") => Object.assign(document.createElement("td"), { textContent: text, className: css });

/** @param {Axis[]} axes */
const devicesOf = (axes) => axes.reduce((product, axis) => product * Number(axis.size), 1);

export class Mesh {
  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    /** @type {Rule[]} */
    this.suggested = [];
    form.addEventListener("input", (event) => this.onInput(event));
    form.addEventListener("click", (event) => this.onClick(event));
    sheet.onChange((from) => this.follow(from));
    this.follow("start");
  }

  /** @returns {Axis[]} */
  get axes() {
    const { axis_names: names = [], shape = [], batch_axis: batch } = this.sheet.spec.mesh ?? {};
    return shape.map((size, i) => ({ name: names[i] ?? "", size, batch: names[i] === batch }));
  }

  /** @param {Origin} from */
  follow(from) {
    if (!this.sheet.spec.mesh) return;
    if (from !== "field") this.drawAxes();
    this.drawDevices();
  }

  drawAxes() {
    const template = find(document, 'template[data-row="axes"]', HTMLTemplateElement);
    const rows = this.axes.map((axis, i) => {
      const row = find(document.importNode(template.content, true), "*", HTMLElement);
      row.dataset.index = String(i);
      find(row, "legend", HTMLElement).textContent = `Axis ${i + 1}`;
      for (const input of findAll(row, "[data-axis]", HTMLElement)) {
        input.id = `axis-${i}-${input.dataset.axis}`;
        input.closest("[data-field]")?.querySelector("label")?.setAttribute("for", input.id);
      }
      find(row, '[data-axis="name"]', HTMLInputElement).value = axis.name;
      find(row, '[data-axis="size"]', HTMLInputElement).value = String(axis.size);
      find(row, '[data-axis="batch"]', HTMLInputElement).checked = axis.batch;
      find(row, "[data-move]", HTMLButtonElement).disabled = i === 0;
      return row;
    });
    find(this.form, '[data-rows="axes"]', HTMLElement).replaceChildren(...rows);
  }

  /**
   * Write the axes into the spec; a simulated mesh has as many devices as the axes need.
   * @param {Axis[]} axes
   * @param {Origin} from
   */
  set(axes, from) {
    this.sheet.edit((spec) => {
      spec.mesh = {
        ...spec.mesh,
        axis_names: axes.map((axis) => axis.name),
        shape: axes.map((axis) => axis.size),
        batch_axis: axes.find((axis) => axis.batch)?.name ?? null,
      };
      const devices = devicesOf(axes);
      if (spec.mesh.simulate !== undefined && Number.isInteger(devices)) spec.mesh.simulate = devices;
    }, from);
    byId("at/spec/mesh/simulate", HTMLInputElement).value = String(this.sheet.spec.mesh?.simulate ?? "");
  }

  /** @param {Event} event */
  onInput(event) {
    const input = closest(event, "[data-axis]");
    if (!(input instanceof HTMLInputElement)) return;
    const index = Number(closest(event, "[data-row-of]")?.dataset.index);
    const { axes } = this;
    if (input.dataset.axis === "name") axes[index].name = input.value.trim();
    if (input.dataset.axis === "size") axes[index].size = Number(input.value) || input.value;
    if (input.dataset.axis === "batch")
      axes.forEach((axis, i) => {
        axis.batch = i === index && input.checked;
      });
    this.set(axes, "field");
    if (input.dataset.axis === "batch") this.drawAxes();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const button = closest(event, "button");
    if (!button) return;
    if (button.dataset.add === "axes") this.addAxis();
    if ("thumb" in button.dataset) this.sheet.put("/mesh/layout", structuredClone(this.suggested), "rows");
    const row = closest(event, '[data-row-of="axes"]');
    if (!row) return;
    const index = Number(row.dataset.index);
    const { axes } = this;
    if ("remove" in button.dataset) this.set(axes.toSpliced(index, 1), "rows");
    if ("move" in button.dataset) {
      [axes[index - 1], axes[index]] = [axes[index], axes[index - 1]];
      this.set(axes, "rows");
    }
  }

  addAxis() {
    const { axes } = this;
    // Whatever the axis is called that divides the batch, another one is for the model.
    const names = axes.some((axis) => axis.batch) ? [] : ["data"];
    const name = [...names, "model", "axis3", "axis4"].find((one) => !axes.some((axis) => axis.name === one)) ?? "";
    this.set([...axes, { name, size: 2, batch: axes.length === 0 }], "rows");
    document.getElementById(`axis-${axes.length}-size`)?.focus();
  }

  /** Draw the devices: the first axis goes down, the others across; devices with the same rows share a tint. */
  drawDevices() {
    const figure = find(this.form, "[data-drawing]", HTMLElement);
    figure.querySelector("svg")?.remove();
    const { axes } = this;
    const sizes = axes.map((axis) => Number(axis.size));
    const devices = devicesOf(axes);
    const caption = find(figure, "figcaption", HTMLElement);
    if (!axes.length || !Number.isInteger(devices) || devices < 1 || devices > 256) {
      caption.textContent = "Give every axis a name and a whole number of devices.";
      return;
    }
    const across = devices / sizes[0];
    const left = 64;
    const top = 24;
    const size = { width: left + across * (CELL + GAP), height: top + sizes[0] * (CELL + GAP) };
    const svg = draw("svg", {
      ...size,
      viewBox: `0 0 ${size.width} ${size.height}`,
      role: "img",
      "aria-label": this.words(axes, devices),
    });
    svg.append(draw("text", { x: 0, y: top + CELL / 2 + 4, class: "ef-axis" }, `${axes[0].name} ↓`));
    const others = axes
      .slice(1)
      .map((axis) => axis.name)
      .join(" × ");
    if (others) svg.append(draw("text", { x: left, y: 14, class: "ef-axis" }, `${others} →`));
    for (let device = 0; device < devices; device += 1)
      svg.append(...this.device(device, sizes, axes, across, left, top));
    figure.prepend(svg);
    caption.textContent = this.words(axes, devices);
  }

  /**
   * @param {number} device
   * @param {number[]} sizes
   * @param {Axis[]} axes
   * @param {number} across
   * @param {number} left
   * @param {number} top
   */
  device(device, sizes, axes, across, left, top) {
    const row = Math.floor(device / across);
    const x = left + (device % across) * (CELL + GAP);
    const y = top + row * (CELL + GAP);
    const batch = axes.findIndex((axis) => axis.batch);
    const shard = batch < 0 ? 0 : Math.floor(device / sizes.slice(batch + 1).reduce((a, b) => a * b, 1)) % sizes[batch];
    return [
      draw("rect", { x, y, width: CELL, height: CELL, rx: 5, class: `ef-device ef-shard-${shard % 8}` }),
      draw("text", { x: x + CELL / 2, y: y + 20, class: "ef-device-name" }, String(device)),
      draw("text", { x: x + CELL / 2, y: y + 36, class: "ef-device-part" }, batch < 0 ? "all" : `b${shard}`),
    ];
  }

  /**
   * @param {Axis[]} axes
   * @param {number} devices
   */
  words(axes, devices) {
    const shape = axes.map((axis) => `${axis.size} “${axis.name}”`).join(" × ");
    const batch = axes.find((axis) => axis.batch);
    const share = batch ? `each batch is divided into ${batch.size} parts (b0 …)` : "every device sees the whole batch";
    return `${devices} device${devices === 1 ? "" : "s"}: ${shape}; ${share}.`;
  }

  /**
   * Show the variables of the plan, and offer the layout that it suggests.
   * @param {Plan | null} plan
   */
  showPlan(plan) {
    this.suggested = plan?.suggested_layout ?? [];
    find(this.form, "[data-thumb]", HTMLButtonElement).disabled = !this.suggested.length;
    find(this.form, "[data-thumb-about]", HTMLElement).textContent = this.explanation(plan);
    const table = find(this.form, "[data-variables]", HTMLElement);
    const body = find(table, "tbody", HTMLElement);
    const variables = plan?.variables ?? [];
    body.replaceChildren(...variables.map((variable) => this.variable(variable)));
    table.hidden = !variables.length;
    if (variables.length) body.append(this.total(variables));
  }

  /**
   * Describe the suggestion, or the reason why there is none.
   * @param {Plan | null} plan
   */
  explanation(plan) {
    if (this.suggested.length)
      return "Few rules that divide the last dimension, in every model that the search may build.";
    const { axes } = this;
    if (axes.length && axes.every((axis) => axis.batch)) return "Needs an axis that does not divide the batch.";
    if (plan?.variables_note && !plan.variables.length) return plan.variables_note;
    return "No variable has a last dimension that this axis divides in every model.";
  }

  /** @param {Variable} variable */
  variable(variable) {
    const row = document.createElement("tr");
    const path = Object.assign(document.createElement("th"), { scope: "row" });
    path.append(Object.assign(document.createElement("code"), { textContent: variable.path }));
    const axes = variable.axes.map((axis) => axis ?? "–").join(", ");
    const sharding = variable.rule === null ? "whole" : `${axes} (rule ${variable.rule + 1})`;
    row.append(
      path,
      cell(`[${variable.shape.join(", ")}]`),
      cell(sharding),
      cell(`[${variable.device_shape.join(", ")}]`),
      cell(grouped(variable.bytes), "num"),
    );
    return row;
  }

  /** @param {Variable[]} variables */
  total(variables) {
    const row = document.createElement("tr");
    const bytes = variables.reduce((sum, variable) => sum + variable.bytes, 0);
    const name = Object.assign(document.createElement("th"), { scope: "row", textContent: "All variables" });
    row.append(name, cell(""), cell(""), cell(""), cell(grouped(bytes), "num"));
    return row;
  }
}
