// Hidden characters in what a person approves are shown by their number.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { waysOf } from "../answers.js";
import { PreviewView } from "../diff-view.js";
import { oneLine, printable, visible, visibleJson, visibleLine } from "../format.js";

/** Returns the texts of an element, with those of its components. */
function textOf(node) {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (node === null || typeof node !== "object") return String(node ?? "");
  return textOf(typeof node.type === "function" ? node.type(node.props) : node.props.children);
}

// spec: AP-05
test("visible shows control and bidirectional characters by their number", () => {
  assert.equal(visible("rm \u202etxt.x\u2066\u200b"), "rm \\u{202e}txt.x\\u{2066}\\u{200b}");
  assert.equal(visible("a\x1b[2Jb\r\n\tc\x9b\u{e0041}"), "a\\u{1b}[2Jb\\u{d}\n\tc\\u{9b}\\u{e0041}");
  assert.equal(visibleLine("a\n? b\tc"), "a\\n? b\\tc");
  assert.equal(visible(null), "");
});

test("visible leaves ordinary text as it is", () => {
  for (const text of ["Hello, é!", "😀 👍🏽 🇩🇪", "日本語 한국어", "مرحبا بالعالم", "שלום", "a\n\tb", "x\u00a0y", "\\u{202e}"]) {
    assert.equal(visible(text), text);
  }
});

test("visible escapes the characters of hidden.rs, and no others", () => {
  const source = readFileSync(new URL("../../../types/src/values/hidden.rs", import.meta.url), "utf8");
  const [, list] = /matches!\(c,([^;]*?)\)\n\}/.exec(source);
  const ranges = [...list.matchAll(/'\\u\{(\w+)\}'(?:\.\.='\\u\{(\w+)\}')?/g)].map(([, from, to = from]) => [parseInt(from, 16), parseInt(to, 16)]);
  assert.ok(ranges.length > 10, list);
  for (let code = 0; code <= 0x10ffff; code += 1) {
    const isControl = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const isHidden = isControl || ranges.some(([from, to]) => from <= code && code <= to);
    const character = String.fromCodePoint(code);
    const isShown = isHidden && character !== "\n" && character !== "\t";
    if ((visible(character) !== character) !== isShown) assert.fail(`U+${code.toString(16)}`);
  }
});

test("visibleJson is read back as the same value", () => {
  const value = { "a\u202e": ["b\u200b", "\u{e0041}\r\n", "\x9b"] };
  const text = visibleJson(value, 2);
  assert.equal(visible(text), text, "nothing is hidden in it");
  assert.deepEqual(JSON.parse(text), value);
  assert.equal(visibleJson(undefined), "");
});

test("printable and oneLine show hidden characters, without carriage returns", () => {
  assert.equal(printable("a\r\nb\u202e"), "a\nb\\u{202e}");
  assert.equal(oneLine("a\u202e\r\n b"), "a\\u{202e} b");
});

// spec: AP-05
test("PreviewView shows hidden characters in the path, the texts and the difference", () => {
  const change = { path: "a\n\u202eb", diff: "@@ -1 +1 @@\n-a\n+b\u200bc\n", added: 1, removed: 1, created: false };
  const text = textOf(PreviewView({ preview: { summary: "s\u202e", warning: "w\u200b", changes: [change] } }));
  for (const part of ["a\\n\\u{202e}b", "+b\\u{200b}c", "s\\u{202e}", "w\\u{200b}"]) assert.ok(text.includes(part), `${part}: ${text}`);
  assert.equal(visible(text), text);
});

test("waysOf offers no rule with a hidden character", () => {
  const ways = (rule) => waysOf({ run: "r", options: ["approve"], rules: [rule], details: {} }).map((way) => way.does);
  assert.deepEqual(ways("bash(ls)"), ["approve", "trust", "cancel"]);
  for (const rule of ["bash(\u202els)", "a\u200b", "a\nb", "a\rb"]) assert.deepEqual(ways(rule), ["approve", "cancel"], rule);
});
