// The version that is trained further: its field, and its layers, which show the frozen ones and where freezing may end.

import { closest, find } from "../../shared/elements.js";
/** @import { FineTuning, Plan, PlannedLayer } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { grouped } from "../../shared/words.js";

const FREEZE = "/model/args/freeze_to";

export class BaseVersion {
  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.sheet = sheet;
    this.input = find(form, "[data-base-version]", HTMLInputElement);
    this.layers = find(form, "[data-layers]", HTMLElement);
    this.rows = find(this.layers, "tbody", HTMLElement);
    this.trained = find(this.layers, "[data-trained]", HTMLElement);
    const options = sheet.known.baseVersions.map(({ name, label }) =>
      Object.assign(document.createElement("option"), { value: name, textContent: label }),
    );
    find(form, "#base-versions", HTMLElement).replaceChildren(...options);
    this.input.addEventListener("change", () => this.choose(this.input.value.trim()));
    this.layers.addEventListener("click", (event) => {
      const path = closest(event, "[data-freeze]")?.dataset.freeze;
      if (path !== undefined) this.sheet.put(FREEZE, path, "rows");
    });
    sheet.onChange(() => this.follow());
    this.follow();
  }

  follow() {
    const { kind, model = "", number, alias } = this.sheet.spec.model ?? {};
    if (kind !== "version") this.layers.hidden = true;
    else if (document.activeElement !== this.input)
      this.input.value = alias === undefined ? [model, number].filter(Boolean).join("/") : `${model}@${alias}`;
  }

  /**
   * Another version has other layers, so the name of one does not stay.
   * @param {string} name
   */
  choose(name) {
    this.sheet.edit((spec) => {
      const args = /** @type {Record<string, unknown>} */ (spec.model?.args ?? {});
      const { freeze_to: freeze, ...rest } = args;
      const kept = freeze === undefined || freeze === "none" || freeze === "all" ? args : rest;
      spec.model = { kind: "version", ...versionNamed(name), args: kept };
    });
  }

  /** @param {Plan | null} plan */
  showPlan(plan) {
    const tuned = plan?.fine_tuning ?? null;
    // A wrong name of a layer has no plan: the layers to choose from stay.
    if (!tuned) return;
    this.layers.hidden = !tuned.layers.length;
    this.rows.replaceChildren(...tuned.layers.map((layer) => row(layer)));
    this.trained.textContent = sentence(tuned);
  }
}

/**
 * Return the fields of a version by its name: `digits/3`, or `digits@champion` for an alias.
 * @param {string} name
 */
export function versionNamed(name) {
  const [, model = name, sign = "/", which = "1"] = /^(.*)([/@])([^/@]+)$/.exec(name) ?? [];
  return sign === "@" ? { model, alias: which } : { model, number: /^\d+$/.test(which) ? Number(which) : which };
}

/** @param {FineTuning} tuned */
function sentence({ version, layers, parameters, trainable }) {
  const frozen = layers.filter((layer) => layer.frozen).length;
  const count = (/** @type {number | null} */ number) => (number === null ? "an unknown number of" : grouped(number));
  return (
    `${version}: ${frozen} of ${layers.length} layers are frozen. Trained are ${count(trainable)} of ` +
    `${count(parameters)} parameters.`
  );
}

/** @param {PlannedLayer} layer */
function row({ path, kind, output_shape: shape, parameters, frozen, head }) {
  const line = document.createElement("tr");
  const cells = [
    path,
    kind,
    shape
      ? shape
          .slice(1)
          .map((size) => size ?? "any")
          .join(" × ")
      : "–",
    grouped(parameters),
  ];
  for (const text of cells) line.append(Object.assign(document.createElement("td"), { textContent: text }));
  line.children[3].className = "ty-num";
  const state = document.createElement("td");
  state.append(head ? "head, trained" : frozen ? "frozen" : "trained");
  if (!head) {
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "ef-link ty-small",
      textContent: "Freeze up to here",
    });
    button.dataset.freeze = path;
    button.setAttribute("aria-label", `Freeze up to ${path}`);
    state.append(" ", button);
  }
  line.append(state);
  if (frozen) line.className = "ef-frozen";
  return line;
}
