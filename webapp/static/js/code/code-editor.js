// Shows CodeMirror in place of the text field of a form for code. The field stays in the form with the same text, so what
// is sent, kept as a draft or checked by the browser is that of the field; without this script it is typed in directly.
import {
  bracketMatching,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  HighlightStyle,
  highlightActiveLine,
  highlightSelectionMatches,
  history,
  historyKeymap,
  indentOnInput,
  indentUnit,
  indentWithTab,
  keymap,
  lineNumbers,
  python,
  searchKeymap,
  syntaxHighlighting,
  tags,
} from "../../vendor/codemirror-6.43.15/codemirror.esm.min.js";
import { el } from "../shared/dom.js";
import { find, findAll } from "../shared/elements.js";

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.self, tags.bool, tags.null], color: "var(--cd-keyword)" },
  { tag: [tags.definition(tags.variableName), tags.className, tags.propertyName], color: "var(--cd-name)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--cd-text)" },
  { tag: tags.number, color: "var(--cd-number)" },
  { tag: tags.comment, color: "var(--cd-comment)", fontStyle: "italic" },
  { tag: tags.meta, color: "var(--cd-decorator)" },
]);
const LOOK = EditorView.theme({
  "&": { fontSize: "0.8125rem", maxHeight: "70vh", minHeight: "16rem" },
  ".cm-scroller": { fontFamily: "var(--tblr-font-monospace)", lineHeight: "1.5", overflow: "auto" },
  ".cm-content": { caretColor: "var(--tblr-body-color)" },
  ".cm-cursor": { borderLeftColor: "var(--tblr-body-color)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--tblr-secondary)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--ty-hover)" },
  ".cm-panels": { backgroundColor: "var(--ty-surface)", color: "var(--tblr-body-color)" },
});

/** @param {HTMLFormElement} form */
function edit(form) {
  const field = find(form, "textarea[name=text]", HTMLTextAreaElement);
  const isPython = !form.dataset.codeEditor || form.dataset.codeEditor.endsWith(".py");
  const hint = el(
    "small",
    { class: "form-hint", id: `${field.id}-keys` },
    "Tab indents; Esc, then Tab, leaves the editor.",
  );
  const described = [field.getAttribute("aria-describedby"), hint.id].filter(Boolean).join(" ");
  const host = el("div", { class: "cd-editor" });
  // Outside a shadow root, CodeMirror adds elements with styles, which the policy of pages forbids.
  const root = host.attachShadow({ mode: "open" });
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: field.value,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        indentUnit.of("    "),
        indentOnInput(),
        bracketMatching(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        syntaxHighlighting(COLOURS),
        isPython ? python() : [],
        LOOK,
        keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({
          "aria-label": field.labels[0]?.textContent?.trim() ?? "Code",
          "aria-describedby": described,
          spellcheck: "false",
        }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged || update.state.doc.toString() === field.value) return;
          field.value = update.state.doc.toString();
          field.dispatchEvent(new Event("input", { bubbles: true }));
        }),
      ],
    }),
  });
  // Another script may write into the field, such as one that restores a draft.
  field.addEventListener("input", () => {
    const text = view.state.doc.toString();
    if (text !== field.value) view.dispatch({ changes: { from: 0, to: text.length, insert: field.value } });
  });
  for (const label of field.labels) label.addEventListener("click", () => view.focus());
  // The browser shows a refusal at the field, so an empty one must have a place: it is small, not hidden.
  field.classList.add("cd-behind-editor");
  field.tabIndex = -1;
  field.setAttribute("aria-hidden", "true");
  field.addEventListener("focus", () => view.focus());
  field.after(host, hint);
}

for (const form of findAll(document, "form[data-code-editor]", HTMLFormElement)) edit(form);
