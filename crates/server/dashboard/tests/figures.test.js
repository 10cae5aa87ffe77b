// The waterfall's arithmetic and the figures about tools.

import assert from "node:assert/strict";
import { test } from "node:test";
import { cycles, figures, percentile, toolRows } from "../tool-figures.js";
import { barAt, bars, lanesOf, pan, scaleOf, ticks, timeAt, xOf, zoom } from "../waterfall-scale.js";

const span = (kind, from, to, more = {}) => ({ id: `${kind}${from}`, lane: 0, kind, label: kind, from_ms: from, to_ms: to, seq: from, status: "success", tokens: null, ...more });

test("a scale leads from times to pixels and back", () => {
  const scale = scaleOf(1000, 2000, 500);
  assert.deepEqual([xOf(scale, 1500), timeAt(scale, 250)], [250, 1500]);
});

test("zoom keeps the time under the pointer, and pan stays within the run", () => {
  const all = { from: 0, to: 1000 };
  const near = zoom(scaleOf(0, 1000, 100), 0.5, 200, all);
  assert.deepEqual([near.from, near.to, xOf(near, 200)], [100, 600, 20]);
  const moved = pan(near, 10, all);
  assert.deepEqual([moved.from, moved.to], [500, 1000]);
  const out = zoom(moved, 100, 700, all);
  assert.deepEqual([out.from, out.to], [0, 1000]);
});

test("ticks are at round distances and few", () => {
  for (const length of [3, 50, 1000, 86_400_000]) {
    const found = ticks(scaleOf(0, length, 900), 0);
    assert.ok(found.length >= 1 && found.length < 25, `${length}: ${found.length}`);
  }
});

test("bars draws what is on the screen, and open spans until now", () => {
  const lanes = lanesOf([span("tool", 20, null, { lane: 1 }), span("model", 0, 10), span("model", 90, 95)]);
  const found = bars(lanes, scaleOf(0, 50, 100), 100);
  assert.deepEqual(found.map((bar) => [bar.span.kind, bar.x, bar.width]), [["model", 0, 20], ["tool", 40, 62]]);
  assert.equal(barAt(found, 10, found[0].y + 1).span.kind, "model");
  assert.equal(barAt(found, 30, found[0].y + 1), null);
});

test("bars of a long run are bounded by the pixels", () => {
  const spans = Array.from({ length: 100_000 }, (_, index) => span("tool", index * 2, index * 2 + 1));
  assert.ok(bars(lanesOf(spans), scaleOf(0, 200_000, 1000), 200_000).length <= 1003);
});

test("percentile is by the nearest rank", () => {
  assert.deepEqual([percentile([], 0.5), percentile([5], 0.95), percentile([1, 2, 3, 4], 0.5), percentile([4, 1, 3, 2], 0.95)], [null, 5, 2, 4]);
});

// spec: OB-09, EX-10
test("toolRows raises an alert for a tool that fails in more than a fifth of its calls", () => {
  const tool = (label, status) => span("tool", 0, 10, { label, status });
  const spans = [
    ...["success", "success", "success", "success", "error"].map((status) => tool("fair", status)),
    ...["success", "timeout", "refused"].map((status) => tool("bad", status)),
  ];
  const rows = toolRows([{ run: "r", spans }]);
  assert.deepEqual(rows.map(({ tool: name, calls, failures, refused, success, isAlert }) => [name, calls, failures, refused, success, isAlert]),
    [["fair", 5, 1, 0, 0.8, false], ["bad", 3, 1, 1, 0.5, true]]);
});

// spec: OB-09
test("cycles count work and no waits, and parallel work once", () => {
  const spans = [span("model", 0, 10), span("wait", 10, 1000), span("tool", 1000, 1020), span("tool", 1005, 1030, { lane: 1 }), span("model", 1030, 1040), span("tool", 1040, null)];
  assert.deepEqual(cycles({ run: "r", spans }).map((cycle) => cycle.ms), [40, 10]);
});

// spec: OB-09
test("figures name the cycles that took longer than 30 s, and the cached share", () => {
  const tokens = { input: 60, output: 5, cache_read: 40, cache_write: 0, total_tokens: 105 };
  const all = figures([{ run: "r", spans: [span("model", 0, 31_000, { tokens }), span("model", 40_000, 41_000)] }]);
  assert.deepEqual([all.cycles, all.slow.length, all.largest, all.cached, all.success], [2, 1, 100, 0.4, null]);
});
