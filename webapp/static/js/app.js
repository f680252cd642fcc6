// The modules of every page. Each adds one behaviour and does not depend on the others.
import "./theme.js";
import "./nav.js";
import "./time.js";
import "./copy.js";
import "./connection/guard.js";
import "./dialogs.js";
import "./toasts.js";
import "./keyboard.js";
import "./search.js";
import "./htmx-hooks.js";
import "./forms.js";
import "./typed.js";
