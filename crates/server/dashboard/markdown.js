// Markdown of models and people as elements. Whatever the text has, only the elements below come out of it.

import { h } from "./preact.js";
import { useMemo } from "./hooks.js";
import { blocks } from "./markdown-blocks.js";

/** Shows a text as Markdown. Headings begin at `level`, so that those of the page stay above them. */
export function Markdown({ text, level = 3 }) {
  const read = useMemo(() => blocks(text), [text]);
  return h("div", { class: "markdown" }, read.map((block) => blockView(block, level)));
}

function blockView(block, level) {
  switch (block.type) {
    case "heading":
      return h(`h${Math.min(6, block.level + level - 1)}`, null, inlineViews(block.children));
    case "rule":
      return h("hr");
    case "block":
      return h("pre", { class: "code", tabIndex: 0, "data-language": block.language || null }, h("code", null, block.text));
    case "quote":
      return h("blockquote", null, block.children.map((child) => blockView(child, level)));
    case "list":
      return listView(block, level);
    case "table":
      return tableView(block);
    default:
      return h("p", null, inlineViews(block.children));
  }
}

function listView({ start, items }, level) {
  const views = items.map((item) => h("li", null, item.map((child) => itemView(child, item, level))));
  return start === null ? h("ul", null, views) : h("ol", { start }, views);
}

/** The only paragraph of an item needs no space around it. */
function itemView(child, item, level) {
  return child.type === "paragraph" && item[0] === child ? inlineViews(child.children) : blockView(child, level);
}

function tableView({ head, rows }) {
  const row = (cells, name) => h("tr", null, cells.map((cell) => h(name, null, inlineViews(cell))));
  return h("div", { class: "wide", tabIndex: 0, role: "region", "aria-label": "Table" },
    h("table", null, h("thead", null, row(head, "th")), h("tbody", null, rows.map((cells) => row(cells, "td")))));
}

function inlineViews(nodes) {
  return nodes.map(inlineView);
}

function inlineView(node) {
  if (typeof node === "string") return node;
  switch (node.type) {
    case "code":
      return h("code", null, node.text);
    case "emphasis":
      return h("em", null, inlineViews(node.children));
    case "strong":
      return h("strong", null, inlineViews(node.children));
    case "deleted":
      return h("del", null, inlineViews(node.children));
    case "link":
      return h("a", { href: node.address, rel: "noopener noreferrer", target: "_blank" }, inlineViews(node.children));
    case "break":
      return h("br");
    case "image":
      return h("span", { class: "dim" }, `[image: ${node.text}]`);
    default:
      return inlineViews(node.children);
  }
}
