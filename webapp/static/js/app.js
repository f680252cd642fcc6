// The modules of every page. Each adds one behaviour and does not depend on the others.
import "./shared/theme.js";
import "./shared/nav.js";
import "./shared/time.js";
import "./shared/copy.js";
import "./shared/connection/guard.js";
import "./shared/dialogs.js";
import "./shared/starts.js";
import "./shared/toasts.js";
import "./shared/keyboard.js";
import "./shared/search.js";
import "./shared/htmx-hooks.js";
import "./shared/patch.js";
import "./shared/forms.js";
import "./shared/typed.js";
