// The fields outside of rows: they show the spec and write into it; their options depend on the data set.

/** @import { Objective, Origin, Spec, Template, Version } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { byId, closest, find, findAll } from "../../shared/elements.js";
import { grouped } from "../../shared/words.js";
import { offer, read, show } from "./inputs.js";
import { get, put } from "./pointer.js";
import { CODE, TEMPLATE } from "./sheet.js";

/** The fields that follow the search's objective while they are empty. */
const FOLLOWS = ["/fit/early_stopping/monitor", "/after/retrain/monitor"];

/** The steps that choose among the trials of a search. */
const STEPS_OF_TRIALS = ["/after/retrain", "/after/ensemble"];

/** @param {Version} version */
const nameOf = ({ number, state }) => (state === "ready" ? String(number) : `${number} (${state})`);

export class Fields {
  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    /** The values of objects that are switched off, by pointer. @type {Map<string, unknown>} */
    this.switchedOff = new Map();
    /** The pointers that were switched off together with the search. @type {string[]} */
    this.offWithSearch = [];
    /** The data with which the form began, unless a person has chosen them. @type {Spec["data"] | null} */
    this.proposed = sheet.known.isDataChosen ? null : { ...sheet.spec.data };
    form.addEventListener("input", (event) => this.onInput(event));
    sheet.onChange((from) => this.follow(from));
    this.offerMetrics();
    this.follow("start");
  }

  get inputs() {
    return findAll(this.form, ".ef-fields [data-pointer]", HTMLElement).filter(
      (input) => !input.closest("[data-row-of]"),
    );
  }

  /** @param {Event} event */
  onInput(event) {
    const toggle = closest(event, "[data-toggle]");
    const input = closest(event, "[data-pointer]");
    const pointer = input?.dataset.pointer;
    if (toggle instanceof HTMLInputElement) this.onToggle(toggle);
    else if (input && pointer && !input.closest("[data-row-of], [data-preprocessing]"))
      this.onValue(pointer, read(input));
  }

  /**
   * @param {string} pointer
   * @param {unknown} value
   */
  onValue(pointer, value) {
    if (pointer === "/data/dataset") {
      if (value !== undefined) this.onDataset(String(value));
    } else if (pointer in this.sheet.known.variants) {
      this.sheet.edit((spec) => this.setKind(spec, pointer, String(value)));
    } else {
      if (pointer === "/search/objective/metric") this.matchDirection(String(value));
      this.sheet.put(pointer, value);
    }
  }

  /**
   * A switch makes its object or deletes it; switched on again, the object has its former values.
   * @param {HTMLInputElement} toggle
   */
  onToggle(toggle) {
    const pointer = toggle.dataset.toggle ?? "";
    if (toggle.checked) {
      this.sheet.put(pointer, this.switchedOff.get(pointer) ?? this.initial(toggle), "rows");
    } else {
      this.switchOff(pointer);
    }
    if (pointer === "/search") this.switchStepsOfTrials(toggle.checked);
  }

  /** @param {string} pointer */
  switchOff(pointer) {
    this.switchedOff.set(pointer, this.sheet.get(pointer));
    this.sheet.put(pointer, undefined, "rows");
  }

  /**
   * Without a search there is one model, and nothing to choose from.
   * @param {boolean} isOn
   */
  switchStepsOfTrials(isOn) {
    if (isOn) {
      for (const pointer of this.offWithSearch) this.sheet.put(pointer, this.switchedOff.get(pointer), "rows");
    } else {
      this.offWithSearch = STEPS_OF_TRIALS.filter((pointer) => this.has(pointer));
      for (const pointer of this.offWithSearch) this.switchOff(pointer);
    }
  }

  /** @param {HTMLInputElement} toggle */
  initial(toggle) {
    const made = JSON.parse(toggle.dataset.initial ?? "{}");
    if (toggle.dataset.toggle === "/search") made.objective = this.objective();
    if (toggle.dataset.toggle === "/after/register") made.model = this.sheet.spec.data?.dataset ?? "";
    return made;
  }

  /** The objective of a new search. The metrics of own code are known after its dry build only. */
  objective() {
    const metric = (this.sheet.templateName !== CODE && this.sheet.measures?.objective) || "val_loss";
    return { metric, direction: this.sheet.directionOf(metric) };
  }

  /** @param {string} metric */
  matchDirection(metric) {
    const objective = this.sheet.spec.search?.objective;
    if (!objective || metric === objective.metric) return;
    Object.assign(objective, { metric, direction: this.sheet.directionOf(metric) });
    this.showValue(byId("at/spec/search/objective/direction", HTMLElement));
  }

  /**
   * Choose a data set and delete what does not fit it: it may have another task and shape.
   * @param {string} slug
   */
  onDataset(slug) {
    this.proposed = null;
    this.sheet.edit((spec) => {
      const { split } = spec.data ?? {};
      spec.data = { ...spec.data, dataset: slug };
      delete spec.data.dataset_version;
      delete spec.data.target;
      delete spec.data.features;
      delete spec.data.task;
      delete spec.data.preprocessing;
      delete spec.data.texts;
      delete spec.data.window;
      delete split?.group;
      delete split?.column;
      delete split?.time;
      delete split?.use_roles;
      if (!this.sheet.measures || this.sheet.templateName === CODE) return;
      delete spec.fit?.loss;
      delete spec.fit?.metrics;
      const wanted = spec.search?.objectives ?? [spec.search?.objective];
      if (spec.search && !wanted.every((one) => this.sheet.watched.includes(one?.metric ?? ""))) {
        delete spec.search.objectives;
        spec.search.objective = this.objective();
      }
      const stopping = spec.fit?.early_stopping;
      if (stopping?.monitor && !this.sheet.watched.includes(stopping.monitor)) delete stopping.monitor;
      const retrain = spec.after?.retrain;
      if (retrain?.monitor && !this.sheet.watched.includes(retrain.monitor)) delete retrain.monitor;
      const { template } = this.sheet;
      if (!template || this.sheet.takes(template)) return;
      const fitting = this.sheet.known.templates.find((one) => this.sheet.takes(one));
      if (fitting) this.setKind(spec, TEMPLATE, fitting.name);
    });
  }

  /**
   * Choose another template, optimizer, schedule …; arguments that it takes too are kept.
   * @param {Spec} spec
   * @param {string} pointer
   * @param {string} name
   */
  setKind(spec, pointer, name) {
    const before = this.sheet.template;
    if (pointer === TEMPLATE && CODE in { [name]: 0, [before?.name ?? ""]: 0 }) {
      this.setCode(spec, name);
      return;
    }
    const { arguments: place, kinds } = this.sheet.known.variants[pointer];
    const takes = Object.keys(kinds[name] ?? {});
    const held = get(spec, place);
    if (held && !takes.length) put(spec, place, undefined);
    else if (held && typeof held === "object")
      put(spec, place, Object.fromEntries(Object.entries(held).filter(([argument]) => takes.includes(argument))));
    if (pointer !== TEMPLATE) {
      put(spec, pointer, name);
      return;
    }
    this.sheet.setTemplate(spec, name);
    this.dropUnused(spec);
    this.searchArguments(spec, before);
  }

  /**
   * Change from a template to own code, or back. Neither has the other's arguments and hyperparameters.
   * @param {Spec} spec
   * @param {string} name
   */
  setCode(spec, name) {
    if (spec.model) delete spec.model.args;
    this.sheet.setTemplate(spec, name);
    this.setProposedData(spec, name);
    this.dropUnused(spec);
    if (!spec.search) return;
    delete spec.search.objectives;
    if (name === CODE) {
      delete spec.search.space;
      spec.search.objective = { metric: "val_loss", direction: "min" };
      return;
    }
    const searched = Object.entries(this.sheet.template?.searched ?? {});
    spec.search.space = searched.map(([own, range]) => ({ name: own, ...structuredClone(range) }));
    spec.search.objective = this.objective();
  }

  /**
   * Withdraw a data set that was only proposed, since a build of code for the wrong one fails; propose it for others.
   * @param {Spec} spec
   * @param {string} name
   */
  setProposedData(spec, name) {
    const { dataset, dataset_version } = this.proposed ?? {};
    const chosen = spec.data?.dataset;
    if (!dataset || !spec.data) return;
    if (chosen !== undefined && (chosen !== dataset || spec.data.dataset_version !== dataset_version)) return;
    delete spec.data.dataset;
    delete spec.data.dataset_version;
    if (name !== CODE) Object.assign(spec.data, { dataset, ...(dataset_version ? { dataset_version } : {}) });
  }

  /**
   * Replace the rows of arguments that the chosen template lacks by those that a new search of it has.
   * @param {Spec} spec
   * @param {Template | undefined} before
   */
  searchArguments(spec, before) {
    const { template } = this.sheet;
    const rows = spec.search?.space;
    if (!spec.search || !template || !Array.isArray(rows) || rows.some((row) => row?.name === "template")) return;
    // KerasTuner's ranges differ from those of equal names: `activation` has other values.
    const isReplaced = template.isHypermodel || before?.isHypermodel;
    const isDropped = (/** @type {string} */ name) =>
      before && Object.hasOwn(before.ranges, name)
        ? isReplaced || !Object.hasOwn(template.ranges, name)
        : template.isHypermodel && Object.hasOwn(template.searched, name);
    const kept = rows.filter((row) => !isDropped(row?.name ?? ""));
    if (kept.length === rows.length && !template.isHypermodel) return;
    const names = kept.map((row) => row?.name);
    const added = Object.entries(template.searched).filter(([name]) => !names.includes(name));
    spec.search.space = [...added.map(([name, range]) => ({ name, ...structuredClone(range) })), ...kept];
  }

  /**
   * Delete what has no effect on models of the chosen template, which the server would refuse.
   * @param {Spec} spec
   */
  dropUnused(spec) {
    for (const { unused, refused } of this.sheet.triedTemplates)
      for (const pointer of Object.keys({ ...unused, ...refused }))
        if (this.sheet.isUnused(pointer)) put(spec, pointer, undefined);
    if (spec.search && Array.isArray(spec.search.space))
      spec.search.space = spec.search.space.filter((row) => !this.sheet.isUnused(`/fit/${row.name}`));
  }

  /** @param {Origin} from */
  follow(from) {
    this.offerChoices();
    if (from !== "field" && from !== "check") for (const input of this.inputs) this.showValue(input);
    if (from === "start") this.openSettings();
    for (const toggle of findAll(this.form, "[data-toggle]", HTMLInputElement))
      toggle.checked = this.has(toggle.dataset.toggle);
    for (const part of findAll(this.form, "[data-within]", HTMLElement)) part.hidden = !this.has(part.dataset.within);
    this.showArguments();
    this.showDeviceNames();
    this.hideUnused();
    this.showSplit();
    this.showSplitRoles();
  }

  /** Open the further settings of a spec that has some of them. */
  openSettings() {
    for (const part of findAll(this.form, "[data-more-settings]", HTMLDetailsElement)) {
      const pointers = findAll(part, "[data-pointer]", HTMLElement).map((input) => input.dataset.pointer);
      part.open = pointers.some((pointer) => this.has(pointer));
    }
  }

  /** @param {HTMLElement} input */
  showValue(input) {
    show(input, this.sheet.shown(input.dataset.pointer ?? ""));
  }

  /** @param {string | undefined} pointer */
  has(pointer = "") {
    return (this.sheet.get(pointer) ?? null) !== null;
  }

  /** Show the names of devices where the mesh has its devices by name. */
  showDeviceNames() {
    const part = find(this.form, "[data-device-names]", HTMLElement);
    part.hidden = !Array.isArray(this.sheet.get("/mesh/devices"));
    if (part.hidden) find(part, "input", HTMLInputElement).value = "";
  }

  /** Show the arguments of the chosen template, optimizer, schedule …, with its own defaults. */
  showArguments() {
    for (const field of findAll(this.form, "[data-only]", HTMLElement)) {
      const { of: place = "", only = "" } = field.dataset;
      const chosen = find(this.form, `[data-pointer="${place}"]`, HTMLElement);
      const kind = String(this.sheet.get(place) ?? JSON.parse(chosen.dataset.default || "null"));
      field.hidden = !only.split(" ").includes(kind);
      const input = find(field, "[data-pointer]", HTMLElement);
      const argument = input.dataset.pointer?.split("/").at(-1) ?? "";
      const { kinds, options } = this.sheet.known.variants[place];
      const own = kinds[kind]?.[argument];
      if (input instanceof HTMLSelectElement) this.offerOptions(input, options[kind]?.[argument]);
      if (input instanceof HTMLInputElement && own !== undefined) input.placeholder = own === null ? "" : String(own);
    }
  }

  /**
   * Offer only the values that an argument has for the chosen template: others of the same name may have more.
   * @param {HTMLSelectElement} input
   * @param {unknown[] | undefined} values
   */
  offerOptions(input, values) {
    const offered = values?.map((value) => JSON.stringify(value));
    for (const option of input.options) option.hidden = !(offered?.includes(option.value) ?? true) && !option.selected;
  }

  /** Hide what has no effect on models of the chosen template, unless it is set: then its error is shown there. */
  hideUnused() {
    const isEmptyList = (/** @type {unknown} */ value) => Array.isArray(value) && !value.length;
    const hides = (/** @type {string} */ pointer) =>
      this.sheet.isUnused(pointer) && (!this.has(pointer) || isEmptyList(this.sheet.get(pointer)));
    for (const input of this.inputs) {
      const field = input.closest("[data-field]");
      if (!(field instanceof HTMLElement)) continue;
      if (hides(input.dataset.pointer ?? "")) field.hidden = true;
      else if (!field.dataset.only) field.hidden = false;
    }
    for (const group of findAll(this.form, "[data-group]", HTMLElement)) {
      const toggles = findAll(group, "[data-toggle]", HTMLElement).map((toggle) => toggle.dataset.toggle ?? "");
      const fields = findAll(group, ".ef-grid > [data-field] [data-pointer]", HTMLElement);
      const lists = findAll(group, "[data-rows]", HTMLElement).map((rows) => rows.id.replace("at/spec", ""));
      const pointers = toggles.length ? toggles : [...fields.map((field) => field.dataset.pointer ?? ""), ...lists];
      const isEmpty = fields.length > 0 && fields.every((field) => field.closest("[data-only][hidden]"));
      // OwnCode shows and hides its own group.
      if (group.dataset.within === undefined && group.dataset.ownCode === undefined)
        group.hidden = (pointers.length > 0 && pointers.every(hides)) || (isEmpty && !toggles.length);
    }
    for (const section of findAll(this.form, "[data-section-of]", HTMLElement)) {
      const pointer = section.dataset.sectionOf ?? "";
      const isHidden = hides(pointer);
      const [template] = this.sheet.triedTemplates;
      const notice = find(section, "[data-unused]", HTMLElement);
      notice.hidden = !isHidden;
      notice.textContent =
        isHidden && template
          ? `This has no effect on ${template.label.toLowerCase()}: ${template.unused[pointer]}.`
          : "";
      if (isHidden) for (const group of findAll(section, "[data-group]", HTMLElement)) group.hidden = true;
    }
  }

  offerMetrics() {
    const set = byId("at/spec/fit/metrics", HTMLElement);
    const names = [...new Set(Object.values(this.sheet.known.tasks).flatMap((task) => task.metrics))];
    for (const name of names) {
      const label = document.createElement("label");
      label.className = "form-check form-check-inline";
      const box = Object.assign(document.createElement("input"), {
        type: "checkbox",
        className: "form-check-input",
        value: name,
      });
      const word = Object.assign(document.createElement("span"), { className: "form-check-label", textContent: name });
      label.append(box, word);
      set.append(label);
    }
  }

  offerChoices() {
    const { sheet } = this;
    const versions = sheet.dataset?.versions ?? [];
    const columns = sheet.version?.columns ?? [];
    /** @type {Record<string, (input: HTMLSelectElement) => void>} */
    const offers = {
      dataset: (input) =>
        offer(
          input,
          sheet.known.datasets.map((one) => one.slug),
          sheet.spec.data?.dataset ? {} : { open: "Choose a data set" },
        ),
      version: (input) =>
        offer(
          input,
          versions.map((one) => one.number),
          {
            open: "newest ready",
            label: (number) => versions.filter((one) => one.number === number).map(nameOf)[0],
          },
        ),
      column: (input) => offer(input, columns, { open: "—" }),
      search: (input) => this.offerSearches(input),
      measure: (input) =>
        offer(input, sheet.watched, FOLLOWS.includes(input.dataset.pointer ?? "") ? { open: "the objective" } : {}),
      loss: (input) => offer(input, sheet.measures?.losses ?? [], { open: "from the task" }),
      template: (input) => this.offerTemplates(input),
    };
    for (const input of this.inputs) {
      const { input: kind = "", pointer = "" } = input.dataset;
      if (!(kind in offers) || !(input instanceof HTMLSelectElement)) continue;
      offers[kind](input);
      show(input, sheet.get(pointer));
    }
    const fitting = sheet.measures?.metrics ?? [];
    for (const label of findAll(document, '[data-input="metrics"] label', HTMLElement)) {
      const box = find(label, "input", HTMLInputElement);
      label.hidden = !fitting.includes(box.value) && !box.checked;
    }
  }

  /**
   * Templates that do not take the data cannot be chosen.
   * @param {HTMLSelectElement} input
   */
  offerTemplates(input) {
    for (const option of input.options) {
      const template = this.sheet.known.templates.find((one) => JSON.stringify(one.name) === option.value);
      option.disabled = template !== undefined && !this.sheet.takes(template);
    }
  }

  /**
   * Offer the earlier searches with the same objectives as this one.
   * @param {HTMLSelectElement} input
   */
  offerSearches(input) {
    const { sheet } = this;
    const { objectives, objective } = sheet.spec.search ?? {};
    const asText = (/** @type {Objective[]} */ objectives) =>
      objectives.map((one) => `${one?.metric} ${one?.direction ?? "min"}`).join();
    const wanted = asText(objectives ?? [objective ?? { metric: "val_loss" }]);
    const fitting = sheet.known.searches.filter((one) => asText(one.objectives) === wanted);
    const label = (/** @type {number} */ id) => sheet.known.searches.find((one) => one.id === id)?.label ?? `job ${id}`;
    offer(
      input,
      fitting.map((one) => one.id),
      { open: fitting.length ? "none" : "none with this objective yet", label },
    );
  }

  /** Show the column whose role decides the split, while the spec itself names none. */
  showSplitRoles() {
    const note = find(this.form, "[data-split-roles]", HTMLElement);
    const { group, column, time, use_roles: follows = true } = this.sheet.spec.data?.split ?? {};
    const roles = this.sheet.version?.splitRoles;
    const role = roles?.split ? "split" : roles?.time ? "time" : "group";
    const decides = roles?.[role] ?? null;
    note.hidden = decides === null;
    if (decides === null) return;
    const way = {
      split: `into the parts that “${decides}” names, whatever the shares above`,
      time: `along “${decides}”`,
      group: `with equal values of “${decides}” together`,
    }[role];
    if (group || column || time) note.textContent = `“${decides}” has the role ${role}; the choice above replaces it.`;
    else if (follows)
      note.textContent = `“${decides}” has the role ${role}: rows are split ${way}. It is an input only if Features names it.`;
    else note.textContent = `“${decides}” has the role ${role}, which is not followed: rows are split at random.`;
  }

  /** Draw the share of rows in each part of the split. */
  showSplit() {
    const figure = find(this.form, "[data-split]", HTMLElement);
    const rows = this.sheet.version?.rows ?? 0;
    const split = { validation: 0.2, test: 0.2, ...this.sheet.spec.data?.split };
    const train = 1 - split.validation - split.test;
    const { group, column, time, use_roles: follows = true } = split;
    const named = column || (follows && !group && !time && this.sheet.version?.splitRoles?.split);
    figure.hidden = Boolean(named) || !rows || !(train > 0 && split.validation > 0 && split.test > 0);
    if (figure.hidden) return;
    /** @type {[string, number][]} */
    const parts = [
      ["train", train],
      ["validation", split.validation],
      ["test", split.test],
    ];
    let x = 0;
    const legend = parts.map(([name, share]) => {
      const bar = find(figure, `.ef-${name}`, SVGElement);
      bar.setAttribute("x", String(x));
      bar.setAttribute("width", String(share * 100));
      x += share * 100;
      const item = document.createElement("span");
      const mark = Object.assign(document.createElement("i"), { className: `ef-mark ef-${name}` });
      item.append(mark, `${name} ≈ ${grouped(Math.round(rows * share))} rows`);
      return item;
    });
    find(figure, "figcaption", HTMLElement).replaceChildren(...legend);
  }
}
