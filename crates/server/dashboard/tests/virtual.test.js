// The arithmetic of lists that draw only the rows on the screen.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Heights, MOST_ROWS, anchorAt, isAtEnd, scrollTopOf, visible } from "../virtual.js";

const keys = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);

function heightsOf(list, estimate = 10) {
  const heights = new Heights(estimate);
  heights.setKeys(list);
  return heights;
}

test("Heights adds estimates and measured heights", () => {
  const heights = heightsOf(keys(0, 100));
  assert.equal(heights.total, 1000);
  assert.equal(heights.measure(3, 30), true);
  assert.equal(heights.measure(3, 30.2), false);
  assert.deepEqual([heights.total, heights.top(3), heights.top(4), heights.top(100)], [1020, 30, 60, 1020]);
});

test("Heights keeps measured heights by key when rows come before", () => {
  const heights = heightsOf(keys(10, 20));
  heights.measure(0, 50);
  heights.setKeys(keys(0, 20));
  assert.deepEqual([heights.top(10), heights.top(11), heights.total], [100, 150, 240]);
});

test("indexAt finds the row at each distance", () => {
  const list = keys(0, 300);
  const heights = heightsOf(list);
  list.forEach((index) => heights.measure(index, 1 + ((index * 7) % 40)));
  for (let distance = 0; distance < heights.total; distance += 13) {
    const index = heights.indexAt(distance);
    assert.ok(heights.top(index) <= distance && distance < heights.top(index + 1), `${distance}`);
  }
});

test("visible draws the rows on the screen and a few beside them", () => {
  const heights = heightsOf(keys(0, 100_000));
  const { from, to, above, below } = visible(heights, 500_000, 600, 5);
  assert.deepEqual([from, to], [49_995, 50_066]);
  assert.equal(above + (to - from) * 10 + below, heights.total);
});

test("visible is bounded, and is right at both ends and without rows", () => {
  const heights = heightsOf(keys(0, 100_000), 1);
  assert.equal(visible(heights, 0, 5000).to, MOST_ROWS);
  assert.equal(visible(heights, 99_000, 5000).to <= 100_000, true);
  assert.deepEqual(visible(heights, -50, 10, 0), { from: 0, to: 11, above: 0, below: 99_989 });
  assert.deepEqual(visible(heightsOf([]), 0, 600), { from: 0, to: 0, above: 0, below: 0 });
});

test("an anchor keeps its place when rows come before it and grow", () => {
  const list = keys(100, 200);
  const heights = heightsOf(list);
  const anchor = anchorAt(heights, list, 255);
  assert.deepEqual(anchor, { key: 125, offset: 5 });
  heights.setKeys(keys(0, 200));
  assert.equal(scrollTopOf(heights, anchor), 1255);
  heights.measure(0, 110);
  assert.equal(scrollTopOf(heights, anchor), 1355);
  heights.setKeys(keys(150, 200));
  assert.equal(scrollTopOf(heights, anchor), null);
  assert.equal(anchorAt(heightsOf([]), [], 0), null);
});

test("an anchor is a row that stays when the first row gets another key", () => {
  const heights = heightsOf(["cut", "b", "c"]);
  const next = ["older", "whole", "b", "c"];
  const anchor = anchorAt(heights, ["cut", "b", "c"], 0, next);
  assert.deepEqual(anchor, { key: "b", offset: -10 });
  heights.setKeys(next);
  assert.equal(scrollTopOf(heights, anchor), 10);
});

test("isAtEnd allows for a few pixels", () => {
  assert.deepEqual([isAtEnd(400, 600, 1000), isAtEnd(380, 600, 1000), isAtEnd(300, 600, 1000)], [true, true, false]);
});
