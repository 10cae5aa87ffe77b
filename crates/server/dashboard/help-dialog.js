// The keys of the page, as a dialog.

import { h } from "./preact.js";
import { Dialog } from "./controls.js";
import { KEYS } from "./keys.js";

const NAMES = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" };

export function HelpDialog({ onClose }) {
  return h(Dialog, { title: "Keys", onClose },
    h("dl", { class: "keys" }, KEYS.map(({ keys, command, does }) =>
      h("div", { key: command },
        h("dt", null, keys.map((key, index) => [index > 0 ? " or " : "", h("kbd", null, NAMES[key] ?? key)])),
        h("dd", null, does)))),
    h("p", { class: "dim" }, "Keys do nothing while you type in a field. In the waterfall, + and − zoom, and 0 shows the whole run."));
}
