// What modules of pages need of a browser, for tests under Node: an address with its history, a document without
// elements, events of the window, a WebSocket and answers of the server. Imported before the modules.

const window = new EventTarget();
const at = new URL("http://trainyard.test/");

/** Canvases that draw a colour as the number of its custom property: each has another one. */
const colours = [];
const span = { style: {}, hidden: false };
const pen = {
  fillStyle: "",
  fillRect() {},
  getImageData() {
    if (!colours.includes(this.fillStyle)) colours.push(this.fillStyle);
    return { data: [colours.indexOf(this.fillStyle), 0, 0, 255] };
  },
};

/** The WebSocket that was opened last. */
export const sockets = [];
class Socket extends EventTarget {
  static OPEN = 1;
  readyState = Socket.OPEN;
  constructor(address) {
    super();
    this.address = address;
    sockets.push(this);
    queueMicrotask(() => this.dispatchEvent(new Event("open")));
  }
  send() {}
}

/** Set to a function of an address that returns an answer of `fetch`. */
export const server = { answer: () => new Promise(() => {}), asked: [] };

/** Go to an address of this site, as a link or the back button does. */
export function visit(address) {
  at.href = new URL(address, at).href;
  window.dispatchEvent(new Event("popstate"));
}

/** Hold timers back until `run`. Node 18 cannot mock them. */
export function holdTimers() {
  const real = globalThis.setTimeout;
  const held = [];
  globalThis.setTimeout = (call) => held.push(call);
  return {
    run() {
      globalThis.setTimeout = real;
      for (const call of held) call();
    },
  };
}

/** Return an answer with a JSON body. */
export const json = (body) => ({ ok: true, status: 200, json: async () => body });

const document = Object.assign(new EventTarget(), {
  visibilityState: "hidden",
  body: { appendChild: (element) => element },
  documentElement: { dataset: { bsTheme: "light" } },
  createElement: (name) => (name === "canvas" ? { getContext: () => pen } : span),
  querySelectorAll: () => [],
  getElementById: () => new HTMLElement(),
});
/** Every element has the parts that a module looks for when it is loaded. */
class HTMLElement extends EventTarget {
  querySelector() {
    return new HTMLElement();
  }
}

/** Browsers have had it since 2024, Node 20 has not. */
Map.groupBy ??= (items, keyOf) => {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
};

Object.assign(globalThis, {
  addEventListener: window.addEventListener.bind(window),
  removeEventListener: window.removeEventListener.bind(window),
  document,
  location: at,
  history: {
    pushState: (_state, _title, address) => visitQuietly(address),
    replaceState: (_s, _t, address) => visitQuietly(address),
  },
  getComputedStyle: (element) => element.style,
  HTMLElement,
  WebSocket: Socket,
  sessionStorage: { getItem: () => null, setItem() {} },
  fetch: (address) => {
    server.asked.push(address);
    return server.answer(address);
  },
});

function visitQuietly(address) {
  at.href = new URL(address, at).href;
}
