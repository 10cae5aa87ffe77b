// A run of 100,000 records, and one that works: when they are on the screen, and how much memory the page takes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, go, home, newPage, open, start, waitForStatus } from "./browser.js";

const RUN = process.env.DASHBOARD_LONG_RUN;
/** The most that each may take, in milliseconds and megabytes. For a waterfall the server reads the whole log. */
const MOST = { firstPaint: 1000, waterfall: 3000, heap: 100, record: 100, lookBack: 120_000 };
/** The least share of the records of a run at work that must be seen. */
const LEAST_SEEN = 0.95;

/** Runs in the page: notes when the first row was painted, in milliseconds after the navigation began. */
function noteFirstRow() {
  const look = () => {
    if (document.querySelector(".virtual-row") === null) requestAnimationFrame(look);
    else requestAnimationFrame(() => { window.firstRow = performance.now(); });
  };
  requestAnimationFrame(look);
}

/** Runs in the page: notes when each record has its row, but those that have one already. Returns when it began. */
function noteRecords() {
  const seen = {};
  const numbers = () => [...document.querySelectorAll(".record-row .number")].map((cell) => cell.textContent);
  numbers().forEach((seq) => { seen[seq] = null; });
  const look = () => {
    const now = Date.now();
    numbers().forEach((seq) => { if (seen[seq] === undefined) seen[seq] = now; });
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  window.seen = seen;
  return Date.now();
}

/** Opens a part of the long run, and returns the time until its first row was painted, in milliseconds. */
async function firstPaint(page, part) {
  await page.addInitScript(noteFirstRow);
  await page.goto(`${home()}#/runs/${RUN}/${part}`);
  await page.locator(".virtual-row").first().waitFor();
  return page.evaluate(async () => {
    while (window.firstRow === undefined) await new Promise((resolve) => requestAnimationFrame(resolve));
    return window.firstRow;
  });
}

/** Returns the memory that the scripts of a page hold, in megabytes. */
async function heapOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize / 1e6;
}

/** Scrolls to the top again and again until record 0 was read. Returns how long that took, in milliseconds. */
async function lookBack(page, list) {
  const begun = Date.now();
  while (Date.now() - begun <= MOST.lookBack) {
    const state = await page.locator(".stream").textContent();
    if (!/older records/i.test(state)) return Date.now() - begun;
    await list.evaluate((element) => {
      element.scrollTop = 0;
      element.dispatchEvent(new Event("scroll"));
    });
    await page.waitForTimeout(50);
  }
  return assert.fail(`record 0 was not there after ${MOST.lookBack} ms: ${await page.locator(".stream").textContent()}`);
}

for (const part of ["transcript", "records"]) {
  test(`${part} of a long run are painted within a second, and older records come on demand`, { skip: !RUN }, async (t) => {
    const page = await newPage();
    const took = await firstPaint(page, part);
    t.diagnostic(`${part}: first paint after ${Math.round(took)} ms`);
    assert.ok(took <= MOST.firstPaint, `${took} ms`);
    const list = page.locator(".virtual");
    const rows = page.locator(".virtual-row");
    assert.ok((await rows.count()) <= 200);
    const back = await lookBack(page, list);
    const first = page.locator('.virtual-row[aria-posinset="1"]');
    for (let turn = 0; turn < 200 && (await first.count()) === 0; turn += 1) {
      await list.evaluate((element) => { element.scrollTop = 0; });
      await page.waitForTimeout(50);
    }
    await first.getByText(part === "records" ? "run_started" : "count 2").first().waitFor();
    const size = Number(await first.getAttribute("aria-setsize"));
    assert.ok(size >= (part === "records" ? 100_000 : 30_000), `${size} rows`);
    assert.ok((await rows.count()) <= 200);
    const heap = await heapOf(page);
    t.diagnostic(`${part}: record 0 after ${back} ms; the scripts hold ${heap.toFixed(1)} MB with ${size} rows`);
    assert.ok(heap <= MOST.heap, `${heap} MB`);
  });
}

test("the waterfall of a long run is painted within three seconds, and has the newest spans", { skip: !RUN }, async (t) => {
  const page = await newPage();
  const took = await firstPaint(page, "waterfall");
  await page.getByText(/^The newest 5,?000 spans are shown/).waitFor();
  const canvas = page.getByRole("img", { name: /spans in/ });
  const isDrawn = await canvas.evaluate((element) => element.getContext("2d").getImageData(0, 0, element.width, element.height).data.some((value) => value > 0));
  assert.ok(isDrawn);
  const spans = page.getByRole("region", { name: "Spans", exact: true });
  await spans.locator('.virtual-row[aria-setsize="5000"]').first().waitFor();
  assert.ok((await page.locator(".virtual-row").count()) <= 200);
  // The last span of the run has its row when the table is at its end.
  await spans.evaluate((element) => { element.scrollTop = element.scrollHeight; });
  await spans.locator('.virtual-row[aria-posinset="5000"]').waitFor();
  const heap = await heapOf(page);
  t.diagnostic(`waterfall: first paint after ${Math.round(took)} ms; the scripts hold ${heap.toFixed(1)} MB`);
  assert.ok(took <= MOST.waterfall, `${took} ms`);
  assert.ok(heap <= MOST.heap, `${heap} MB`);
});

test("a record of a run that works is on the screen at once", async (t) => {
  const page = await open("#/playground");
  const run = await start(page, "count 200");
  await go(page, `#/runs/${run}/records`);
  await page.locator(".record-row").first().waitFor();
  const begun = await page.evaluate(noteRecords);
  await waitForStatus(page, run, "finished", 300);
  const { records } = await ask(page, `runs/${run}/records?limit=10000`);
  await page.getByText("The run has ended").waitFor();
  const seen = await page.evaluate(() => window.seen);
  // A record that the list jumped over was never on the screen, which is later than any time.
  const written = records.filter(({ seq, at }) => at > begun && seen[seq] !== null);
  const delays = written.map(({ seq, at }) => (seen[seq] ?? Infinity) - at).sort((a, b) => a - b);
  const [middle, late] = [0.5, 0.95].map((share) => delays[Math.floor(delays.length * share)]);
  const shown = delays.filter(Number.isFinite).length;
  t.diagnostic(`record to pixel: p50 ${middle} ms, p95 ${late} ms, of ${written.length} records, of which ${shown} were seen`);
  assert.ok(written.length > 100, `${written.length} records were written while the page was watched`);
  assert.ok(shown >= LEAST_SEEN * written.length, `${shown} of ${written.length} records were seen`);
  assert.ok(late <= MOST.record, `${late} ms`);
});
