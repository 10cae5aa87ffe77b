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

test("blocks takes the signs at the end of a heading for its end only after a space", () => {
  const texts = ["# C#", "# C #", "## a ## b ##  ", "# ##", "#no"].map((text) => blocks(text)[0]);
  assert.deepEqual(texts.map(({ type, children }) => [type, ...children]), [
    ["heading", "C#"], ["heading", "C"], ["heading", "a ## b"], ["heading"], ["paragraph", "#no"],
  ]);
});

test("blocks ends code with as many signs of its fence, and takes no line of other signs for the end", () => {
  const text = "````\n```\n~~~~\n```` x\n`````\nafter";
  assert.deepEqual(blocks(text).map((block) => block.text ?? block.children[0]), ["```\n~~~~\n```` x", "after"]);
  assert.deepEqual(blocks("~~~ js\nx\n~~~")[0], { type: "block", language: "js", text: "x" });
});

test("blocks reads a table with and without signs at its sides, and none without a line below its head", () => {
  for (const text of ["a|b\n-|-\n1|2", "| a | b |\n|:--|--:|\n| 1 | 2 |", " a | b\n :-: | - \n 1|2"]) {
    assert.deepEqual(blocks(text), [{ type: "table", head: [["a"], ["b"]], rows: [[["1"], ["2"]]] }], text);
  }
  for (const text of ["a|b\n1|2", "a|b\n-|x", "a|b\n|", "a|b\n-||-"]) assert.equal(blocks(text)[0].type, "paragraph", text);
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
    `# a${" ".repeat(2_000)}b`, `\`\`\`${" ".repeat(50_000)}\``, `${"~".repeat(50_000)}\``, `a|b\n${" ".repeat(50_000)}x`,
    `a|b\n-${" ".repeat(50_000)}x`, `- ${" ".repeat(100_000)}a\u2028x`, `[](${" ".repeat(2_990)}`.repeat(100),
    `\` ${"a".repeat(3_900)}\``.repeat(300), `http://a${".".repeat(2_000)}x `.repeat(300),
  ];
  for (const text of made) {
    const begun = performance.now();
    blocks(text);
    assert.ok(performance.now() - begun < 2000, `${text.slice(0, 10)} took ${performance.now() - begun} ms`);
  }
});
