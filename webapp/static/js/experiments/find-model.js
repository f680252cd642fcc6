// The form of "Find a good model": the browser keeps its entries until they are submitted.
import { byId } from "../shared/elements.js";
import { LocalDraft } from "../shared/local-draft.js";

new LocalDraft(byId("find-model", HTMLFormElement));
