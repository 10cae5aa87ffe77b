// What a call would change: its files with their differences. Added and removed lines have a sign, not only a colour.

import { h } from "./preact.js";
import { diffLines } from "./answers.js";
import { visible, visibleLine } from "./format.js";

export function PreviewView({ preview }) {
  if (preview === null) return null;
  return h("div", { class: "preview" },
    preview.summary ? h("p", null, visible(preview.summary)) : null,
    preview.warning ? h("p", { class: "warn" }, `Warning: ${visible(preview.warning)}`) : null,
    preview.outside_cwd ? h("p", { class: "warn" }, "Warning: it is outside the working directory.") : null,
    (preview.changes ?? []).map((change) => h(Change, { key: change.path, change })));
}

function Change({ change: { path, created, diff, added, removed } }) {
  return h("figure", { class: "change" },
    h("figcaption", null, h("code", null, visibleLine(path)), created ? " (new file)" : "", h("span", { class: "dim" }, ` +${added} −${removed}`)),
    diff
      ? h("pre", { class: "code diff", tabIndex: 0, role: "region", "aria-label": `Difference of ${visibleLine(path)}` },
          diffLines(diff).map(({ kind, text }, index) => h("span", { key: index, class: kind }, `${visible(text)}\n`)))
      : h("p", { class: "warn" }, "The difference is too large to show."));
}
