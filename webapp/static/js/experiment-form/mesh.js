// The mesh: its axes as rows, its drawing, and every variable under its layout.
import { grouped } from "../trials/words.js";

const SVG = "http://www.w3.org/2000/svg";
const CELL = 46;
const GAP = 6;

function draw(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const cell = (text, css = "") => Object.assign(document.createElement("td"), { textContent: text, className: css });

export class Mesh {
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    this.suggested = [];
    form.addEventListener("input", (event) => this.onInput(event));
    form.addEventListener("click", (event) => this.onClick(event));
    sheet.addEventListener("change", (event) => this.follow(event.detail.from));
    this.follow("start");
  }

  get axes() {
    const names = this.sheet.get("/mesh/axis_names") ?? [];
    const sizes = this.sheet.get("/mesh/shape") ?? [];
    const batch = this.sheet.get("/mesh/batch_axis");
    return sizes.map((size, i) => ({ name: names[i] ?? "", size, batch: names[i] === batch }));
  }

  follow(from) {
    if (!this.sheet.get("/mesh")) return;
    if (from !== "field") this.drawAxes();
    this.drawDevices();
  }

  drawAxes() {
    const template = document.querySelector('template[data-row="axes"]');
    const rows = this.axes.map((axis, i) => {
      const row = template.content.firstElementChild.cloneNode(true);
      row.dataset.index = i;
      row.querySelector("legend").textContent = `Axis ${i + 1}`;
      for (const input of row.querySelectorAll("[data-axis]")) {
        input.id = `axis-${i}-${input.dataset.axis}`;
        input.closest("[data-field]")?.querySelector("label").setAttribute("for", input.id);
      }
      row.querySelector('[data-axis="name"]').value = axis.name;
      row.querySelector('[data-axis="size"]').value = axis.size;
      row.querySelector('[data-axis="batch"]').checked = axis.batch;
      row.querySelector("[data-move]").disabled = i === 0;
      return row;
    });
    this.form.querySelector('[data-rows="axes"]').replaceChildren(...rows);
  }

  /** Write the axes back; a simulated mesh has as many devices as the axes say. */
  set(axes, from) {
    this.sheet.edit((spec) => {
      spec.mesh.axis_names = axes.map((axis) => axis.name);
      spec.mesh.shape = axes.map((axis) => axis.size);
      spec.mesh.batch_axis = axes.find((axis) => axis.batch)?.name ?? null;
      const devices = axes.reduce((product, axis) => product * axis.size, 1);
      if (spec.mesh.simulate !== undefined && Number.isInteger(devices)) spec.mesh.simulate = devices;
    }, from);
    const simulate = document.getElementById("at/spec/mesh/simulate");
    simulate.value = this.sheet.get("/mesh/simulate") ?? "";
  }

  onInput(event) {
    const input = event.target.closest("[data-axis]");
    if (!input) return;
    const index = Number(input.closest("[data-row-of]").dataset.index);
    const { axes } = this;
    if (input.dataset.axis === "name") axes[index].name = input.value.trim();
    if (input.dataset.axis === "size") axes[index].size = Number(input.value) || input.value;
    if (input.dataset.axis === "batch")
      axes.forEach((axis, i) => {
        axis.batch = i === index && input.checked;
      });
    this.set(axes, input.dataset.axis === "size" ? "field" : "field");
    if (input.dataset.axis === "batch") this.drawAxes();
  }

  onClick(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.add === "axes") this.addAxis();
    if ("thumb" in button.dataset) this.sheet.put("/mesh/layout", structuredClone(this.suggested), "rows");
    const row = button.closest('[data-row-of="axes"]');
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
    const name = ["data", "model", "axis3", "axis4"].find((one) => !axes.some((axis) => axis.name === one)) ?? "";
    this.set([...axes, { name, size: 2, batch: axes.length === 0 }], "rows");
    document.getElementById(`axis-${axes.length}-size`)?.focus();
  }

  /** The first axis goes down, the others across; devices that share rows of the batch share a tint. */
  drawDevices() {
    const figure = this.form.querySelector("[data-drawing]");
    figure.querySelector("svg")?.remove();
    const { axes } = this;
    const sizes = axes.map((axis) => axis.size);
    const devices = sizes.reduce((product, size) => product * size, 1);
    const caption = figure.querySelector("figcaption");
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

  device(device, sizes, axes, across, left, top) {
    const row = Math.floor(device / across);
    const x = left + (device % across) * (CELL + GAP);
    const y = top + row * (CELL + GAP);
    const batch = axes.findIndex((axis) => axis.batch);
    const shard = batch < 0 ? 0 : Math.floor(device / sizes.slice(batch + 1).reduce((a, b) => a * b, 1)) % sizes[batch];
    return [
      draw("rect", { x, y, width: CELL, height: CELL, rx: 5, class: `ef-device ef-shard-${shard % 8}` }),
      draw("text", { x: x + CELL / 2, y: y + 20, class: "ef-device-name" }, device),
      draw("text", { x: x + CELL / 2, y: y + 36, class: "ef-device-part" }, batch < 0 ? "all" : `b${shard}`),
    ];
  }

  words(axes, devices) {
    const shape = axes.map((axis) => `${axis.size} “${axis.name}”`).join(" × ");
    const batch = axes.find((axis) => axis.batch);
    const share = batch ? `each batch is divided into ${batch.size} parts (b0 …)` : "every device sees the whole batch";
    return `${devices} device${devices === 1 ? "" : "s"}: ${shape}; ${share}.`;
  }

  /** Take in the plan: the variables, and what the rule of thumb would be. */
  showPlan(plan) {
    this.suggested = plan?.suggested_layout ?? [];
    this.form.querySelector("[data-thumb]").disabled = !this.suggested.length;
    const body = this.form.querySelector("[data-variables] tbody");
    const variables = plan?.variables ?? [];
    body.replaceChildren(...variables.map((variable) => this.variable(variable)));
    this.form.querySelector("[data-variables]").hidden = !variables.length;
    if (variables.length) body.append(this.total(variables));
  }

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

  total(variables) {
    const row = document.createElement("tr");
    const bytes = variables.reduce((sum, variable) => sum + variable.bytes, 0);
    const name = Object.assign(document.createElement("th"), { scope: "row", textContent: "All variables" });
    row.append(name, cell(""), cell(""), cell(""), cell(grouped(bytes), "num"));
    return row;
  }
}
