// Controls that several views have: buttons with a right, fields, dialogs, tabs.

import { h } from "./preact.js";
import { useEffect, useId, useRef } from "./hooks.js";
import { printable, visibleJson } from "./format.js";
import { useMe } from "./me.js";

/** A button for what needs a right. Without the right it is disabled, and says why. */
export function RightButton({ right, onClick, disabled = false, kind = "", children, ...more }) {
  const { may, whyNot } = useMe();
  const id = useId();
  const isAllowed = may(right);
  return h("span", { class: "right" },
    h("button", {
      type: "button", class: kind, onClick, disabled: disabled || !isAllowed,
      "aria-describedby": isAllowed ? null : id, title: isAllowed ? null : whyNot(right), ...more,
    }, children),
    isAllowed ? null : h("span", { id, class: "sr" }, whyNot(right)));
}

/** A field with its label. `as` is the element, and `hint` a line below it. */
export function Field({ label, as = "input", hint = null, children, ...more }) {
  const id = useId();
  const described = hint === null ? null : `${id}-hint`;
  return h("div", { class: "field" },
    h("label", { for: id }, label),
    h(as, { id, "aria-describedby": described, ...more }, children),
    hint === null ? null : h("p", { id: described, class: "dim hint" }, hint));
}

/** A dialog over the page. The browser keeps the focus in it, and closes it with Escape. */
export function Dialog({ title, onClose, children }) {
  const root = useRef(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    root.current.showModal();
    return () => before?.focus?.();
  }, []);
  return h("dialog", { ref: root, "aria-labelledby": id, onClose },
    h("div", { class: "dialog-head" },
      h("h2", { id }, title),
      h("button", { type: "button", onClick: () => root.current.close() }, "Close")),
    children);
}

/** Links to the parts of a view; `current` is the name of the one that is shown. */
export function Tabs({ label, tabs, current }) {
  return h("nav", { class: "tabs", "aria-label": label },
    tabs.map(({ name, text, href }) => h("a", { key: name, href, "aria-current": name === current ? "page" : null }, text)));
}

/** A text, or a value as JSON, which can be scrolled and copied; hidden characters are shown by their number. */
export function JsonText({ value, label }) {
  const text = typeof value === "string" ? printable(value) : visibleJson(value, 2);
  return h("pre", { class: "code", tabIndex: 0, role: "region", "aria-label": label }, text);
}

/** A table with a caption for readers of the page's text; wide ones scroll. */
export function Table({ caption, head, children }) {
  return h("div", { class: "wide", tabIndex: 0, role: "region", "aria-label": caption },
    h("table", null,
      h("caption", { class: "sr" }, caption),
      h("thead", null, h("tr", null, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, children)));
}

/** Facts as pairs of a name and a value; pairs without a value are left out. */
export function Facts({ facts }) {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, shown.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}
