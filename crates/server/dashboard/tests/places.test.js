// Addresses, numbers for people, answers to questions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, editOf, hasUnreadSources, runsOf, sourceText, sourcesOf, waysOf } from "../answers.js";
import { ago, clock, duration, money, oneLine, percent, short } from "../format.js";
import { link, parse, runLink } from "../route.js";

test("parse reads what link writes", () => {
  const parts = ["runs", "run/1 ?#ä", "records", "7"];
  const query = { text: "a & b", status: "running" };
  assert.deepEqual(parse(link(parts, query)), { parts, query });
  assert.equal(link(["runs"], { text: "", status: null, session: undefined }), "#/runs");
  assert.equal(runLink("r", 0), "#/runs/r/records/0");
});

test("parse gives the runs for an empty or damaged address", () => {
  for (const hash of ["", "#", "#/"]) assert.deepEqual(parse(hash).parts, ["runs"]);
  assert.deepEqual(parse("#/runs/%zz").parts, ["runs", "%zz"]);
});

test("numbers are short and say their unit", () => {
  assert.deepEqual([0, 950, 1500, 61_000, 3_660_000].map(duration), ["0 ms", "950 ms", "1.5 s", "1 min 1 s", "1 h 1 min"]);
  assert.deepEqual([null, 0, 1234, 25_000, 1_234_567].map(money), ["", "0.00", "0.0012", "0.03", "1.23"]);
  assert.deepEqual([0, 999, 1234, 45_678, 2_500_000].map(short), ["0", "999", "1.2k", "46k", "2.5M"]);
  assert.deepEqual([percent(0.123), percent(1), percent(null)], ["12 %", "100 %", ""]);
  assert.deepEqual([ago(0, 5000), ago(0, 7_200_000)], ["5 s ago", "2 h ago"]);
  assert.match(clock(1_700_000_000_123), /^\d\d:\d\d:\d\d\.123$/);
});

test("oneLine cuts whole characters", () => {
  assert.equal(oneLine("a\n  b", 10), "a b");
  assert.equal(oneLine("😀😀😀", 2), "😀…");
});

const question = (more) => ({ run: "r", options: ["approve", "edit", "cancel"], allow_modification: true, details: { tool: "t", arguments: { a: 1 } }, ...more });
const does = (more) => waysOf(question(more)).map((way) => way.does);

test("waysOf gives the answers of the terminal", () => {
  assert.deepEqual(does({}), ["approve", "edit", "cancel"]);
  assert.deepEqual(does({ rules: ["bash(ls)"] }), ["approve", "trust", "edit", "cancel"]);
  assert.deepEqual(does({ rules: ["x".repeat(201)] }), ["approve", "edit", "cancel"]);
  assert.deepEqual(does({ allow_modification: false }), ["approve", "cancel"]);
  assert.deepEqual(does({ kind: "in_doubt", options: ["approve", "reply", "cancel"] }), ["approve", "reply", "cancel"]);
  const missing = [{ name: "city", kind: "text", description: "where" }];
  assert.deepEqual(does({ kind: "input", options: ["reply", "edit", "cancel"], details: { missing } }), ["inputs", "cancel"]);
  assert.deepEqual(does({ kind: "input", options: ["reply"], details: {} }), ["reply", "cancel"]);
});

test("editOf takes JSON objects only", () => {
  assert.deepEqual(editOf('{"a": 2}'), { answer: { answer: "edit", arguments: { a: 2 } } });
  for (const text of ["", "[1]", "null", "{"]) assert.ok(editOf(text).problem.length > 0, text);
});

test("runsOf has the run that logs the question and those below", () => {
  assert.deepEqual(runsOf(question({ call_path: [{ run: "r.0", call: {} }] })), ["r", "r.0"]);
});

test("sourceText says every source in words", () => {
  const kinds = ["message", "answer", "file", "tool_result", "memory", "instructions", "other_message", "new_kind"];
  for (const kind of kinds) {
    const text = sourceText({ kind, beginning: "b", name: "n", tool: "t", argument: "a" });
    assert.ok(text.length > 0 && !text.includes("undefined"), text);
  }
  assert.equal(sourceText("tool_result"), "tool result");
});

test("diffLines tells the kind of each line", () => {
  assert.deepEqual(diffLines("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n").map((line) => line.kind), ["place", "place", "place", "removed", "added", "same"]);
});

test("hasUnreadSources tells sources that are not known from none, and from those not there yet", () => {
  assert.deepEqual([null, [], undefined].map((provenance) => hasUnreadSources({ provenance })), [true, false, false]);
  assert.deepEqual([null, [], undefined].map((provenance) => sourcesOf({ provenance }, "a")), [[], [], []]);
});
