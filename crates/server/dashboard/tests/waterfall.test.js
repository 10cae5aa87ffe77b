// The arithmetic of the waterfall, and the figures about tools and turns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { alertText, requestFigures, toolRows } from "../performance.js";
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

const durations = { count: 5, p50_ms: 1, p95_ms: 2, max_ms: 3 };

// spec: OB-09, EX-10
test("toolRows has the share of success and the alert of each tool, the one with the most calls first", () => {
  const tools = [
    { tool: "bad", calls: 2, failures: 1, refused: 3, durations },
    { tool: "fair", calls: 5, failures: 1, refused: 0, durations },
    { tool: "unused", calls: 0, failures: 0, refused: 1, durations },
  ];
  const alerts = [{ alert: "tool_failures", tool: "bad", calls: 2, failures: 1 }];
  assert.deepEqual(toolRows({ tools, alerts }).map(({ tool, success, isAlert }) => [tool, success, isAlert]),
    [["fair", 0.8, false], ["bad", 0.5, true], ["unused", null, false]]);
});

// spec: OB-09
test("alertText says each alert in words", () => {
  assert.equal(alertText({ alert: "tool_failures", tool: "bad", calls: 2, failures: 1 }), "bad failed in 1 of 2 calls, which is more than 20 %");
  assert.equal(alertText({ alert: "slow_turn", run: "r", turn: 0, duration_ms: 42_000 }), "turn 1 took 42 s, which is more than 30 s");
  assert.equal(alertText({ alert: "made_up_later" }), "made up later");
});

// spec: OB-09
test("requestFigures has the average request and its cached share", () => {
  const usage = { input: 60, output: 5, cache_read: 40, cache_write: 0, total_tokens: 105 };
  assert.deepEqual(requestFigures([{ turns: 1, usage }, { turns: 1, usage }]), { average: 100, cached: 0.4 });
  assert.deepEqual(requestFigures([]), { average: null, cached: null });
});
