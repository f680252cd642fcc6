// The proposed name of a new experiment: it follows the data, the model and the algorithm until the user writes another one.

/** @import { Known, Spec } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { CODE } from "./sheet.js";

const MOST = 190; // characters, so that a number has room behind them

const words = (/** @type {unknown} */ name) => String(name ?? "").replaceAll("_", " ");

/**
 * Return the proposed name of an experiment with a spec; the server proposes the same one for a new form.
 * @param {Spec} spec
 * @param {Known} known
 */
function proposal({ data, model, search }, { names }) {
  // JSON typed by a user may have anything in place of them.
  const entry =
    String(model?.entry ?? "")
      .split(":")
      .at(-1) || CODE;
  const kind = model?.kind === CODE ? entry : (model?.template ?? model?.name);
  const start = model?.kind === "version" ? `${model.model} fine-tuned` : `${data?.dataset ?? ""} ${words(kind)}`;
  const name = (search ? `${start}, ${words(search.algorithm ?? "random")} search` : start).slice(0, MOST);
  let free = name;
  for (let number = 2; names.includes(free); number++) free = `${name} ${number}`;
  return free;
}

/**
 * @param {HTMLInputElement} input
 * @param {Sheet} sheet
 */
export function followSpec(input, sheet) {
  const { known } = sheet;
  if (known.experiment !== null) return;
  let proposed = proposal(sheet.spec, known);
  sheet.onChange(() => {
    const isFollowing = input.value === proposed;
    proposed = proposal(sheet.spec, known);
    if (isFollowing) input.value = proposed;
  });
}
