// The experiment form: one spec object, shown as fields and as JSON, validated by the server as it changes.

/** @import { Verdict } from "./types.js" */
import { answers } from "../../shared/connection/server.js";
import { isLoggedIn } from "../../shared/connection/session.js";
import { byId, closest, find } from "../../shared/elements.js";
import { followLists } from "../../shared/listed-words.js";
import { LocalDraft } from "../../shared/local-draft.js";
import { AddHyperparameter } from "./add-hyperparameter.js";
import { Check } from "./check.js";
import { Exchange } from "./exchange.js";
import { Fields } from "./fields.js";
import { JsonPane, parsed } from "./json.js";
import { Mesh } from "./mesh.js";
import { followSpec } from "./name.js";
import { OwnCode } from "./own-code.js";
import { PlanView } from "./plan.js";
import { Precision } from "./precision.js";
import { Preprocessing } from "./preprocessing.js";
import { Problems } from "./problems.js";
import { Rows } from "./rows.js";
import { SearchSwitches } from "./search-switches.js";
import { Sheet } from "./sheet.js";
import { SpaceTable } from "./space-table.js";
import { Steps } from "./steps.js";
import { BaseVersion } from "./version.js";

const form = byId("experiment-form", HTMLFormElement);
const known = JSON.parse(byId("form-context", HTMLElement).textContent);

const text = find(form, ".ef-text", HTMLTextAreaElement).value;
const sheet = new Sheet(parsed(text).spec ?? {}, known);
const steps = new Steps(form);
const fields = new Fields(form, sheet);
followSpec(find(form, "[name=name]", HTMLInputElement), sheet);
new Preprocessing(form, sheet, fields);
const space = new SpaceTable(form, sheet);
const rows = new Rows(form, sheet, space);
new AddHyperparameter(sheet, (name) => rows.addHyperparameter(name));
followLists(form);
new SearchSwitches(form, sheet, fields, space);
space.showMarked();
new Precision(form, sheet);
const ownCode = new OwnCode(form, sheet);
const mesh = new Mesh(form, sheet);
const version = new BaseVersion(form, sheet);
const json = new JsonPane(form, sheet);
new Exchange(form, sheet);
const problems = new Problems(form, steps);
const plan = new PlanView(form);
const check = new Check(form, sheet);
/** @type {Verdict} */
let last = { state: "busy" };

/** Remove the reasons why the server refused the form. Not every one is a problem of the spec, which the check would repeat. */
const forgetRefusal = () => document.getElementById("server-problems")?.remove();
sheet.onChange((from) => {
  if (from !== "check") forgetRefusal();
});

check.addEventListener("verdict", (event) => {
  const { detail } = /** @type {CustomEvent<Verdict>} */ (event);
  const { errors = [] } = detail;
  last = detail;
  form.dataset.verdict = detail.state;
  plan.show(detail);
  if (detail.state !== "ok" && detail.state !== "bad") return;
  space.accept(detail.ranges ?? []);
  if (errors.length) forgetRefusal(); // the same problems are now at their fields
  problems.show(errors, detail.plan?.warnings);
  json.showProblems(errors);
  mesh.showPlan(detail.plan ?? null);
  version.showPlan(detail.plan ?? null);
});

sheet.addEventListener("broken", (event) => {
  const { message } = /** @type {CustomEvent<{ message: string }>} */ (event).detail;
  const errors = [{ pointer: "/spec", message }];
  check.cancel();
  last = { state: "bad", errors, plan: null };
  form.dataset.verdict = "bad";
  plan.show(last);
  problems.show(errors);
});

for (const type of ["ty:server", "ty:session"])
  document.addEventListener(type, () => {
    if (!answers() || !isLoggedIn()) return;
    if (last.state === "away" || last.state === "logged-out") check.schedule(0);
    ownCode.resume();
  });

sheet.addEventListener("rebuilt", () => check.schedule(0));

// The guard of unsaved changes listens for input: it must also be notified of changes by buttons.
sheet.onChange((from) => {
  if (from !== "check") form.dispatchEvent(new Event("input"));
});

// Choosing a policy on its card is the same as choosing it in the field.
form.addEventListener("click", (event) => {
  const policy = closest(event, "[data-choose]")?.dataset.choose;
  if (policy) sheet.put("/precision/policy", policy, "rows");
});

// A spec that did not pass validation is not submitted: its first problem is shown instead.
form.addEventListener(
  "submit",
  (event) => {
    const saves = event.submitter instanceof HTMLButtonElement && ["draft", "design"].includes(event.submitter.value);
    if (saves && !json.broken) return;
    if (last.state !== "bad") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    problems.jump(last.errors?.[0]?.pointer ?? "/spec");
  },
  true,
);

// Last, since a draft that is restored is an input of all fields.
new LocalDraft(form);
