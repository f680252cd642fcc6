// The experiment form: one spec object, shown as fields and as JSON, judged by the server as it changes.
import { Check } from "./check.js";
import { Exchange } from "./exchange.js";
import { Fields } from "./fields.js";
import { JsonPane } from "./json.js";
import { Mesh } from "./mesh.js";
import { PlanView } from "./plan.js";
import { Problems } from "./problems.js";
import { Rows } from "./rows.js";
import { Sheet } from "./sheet.js";
import { Steps } from "./steps.js";

const form = document.getElementById("experiment-form");
const known = JSON.parse(document.getElementById("form-context").textContent);

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

const text = form.querySelector(".ef-text").value;
const sheet = new Sheet(parsed(text) ?? {}, known);
const steps = new Steps(form);
const fields = new Fields(form, sheet);
const rows = new Rows(form, sheet);
const mesh = new Mesh(form, sheet);
const json = new JsonPane(form, sheet);
new Exchange(form, sheet);
const problems = new Problems(form, steps);
const plan = new PlanView(form);
const check = new Check(form, sheet);
let last = { state: "busy", errors: [] };

check.addEventListener("verdict", ({ detail }) => {
  last = detail;
  form.dataset.verdict = detail.state;
  plan.show(detail);
  if (detail.state === "busy" || detail.state === "away") return;
  document.getElementById("server-problems")?.remove();
  problems.show(detail.errors);
  json.showProblems(detail.errors);
  mesh.showPlan(detail.plan);
});

sheet.addEventListener("broken", ({ detail }) => {
  clearTimeout(check.timer);
  last = { state: "bad", errors: [{ pointer: "/spec", message: detail.message }], plan: null };
  form.dataset.verdict = "bad";
  plan.show(last);
  problems.show(last.errors);
});

// The guard of unsaved changes listens for input: tell it of changes made by buttons too.
sheet.addEventListener("change", () => form.dispatchEvent(new Event("input")));
if ("unsaved" in form.dataset) form.dispatchEvent(new Event("input"));

// Choosing a policy in the advisor is the same as choosing it in the field.
form.addEventListener("click", (event) => {
  const policy = event.target.closest("[data-choose]")?.dataset.choose;
  if (policy) sheet.put("/precision/policy", policy, "rows");
});

// A spec that the judge has found wanting is not sent: its first problem is shown instead.
form.addEventListener(
  "submit",
  (event) => {
    if (event.submitter?.value === "draft" && !json.broken) return;
    if (last.state !== "bad") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    problems.jump(last.errors[0]?.pointer ?? "/spec");
  },
  true,
);

export { fields, rows };
