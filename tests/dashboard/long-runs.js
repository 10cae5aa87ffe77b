// A run of 100,000 records: it is painted within a second, and the page stays small.

import assert from "node:assert/strict";
import { test } from "node:test";
import { home, open } from "./browser.js";

const RUN = process.env.DASHBOARD_LONG_RUN;

for (const part of ["transcript", "records"]) {
  test(`${part} of a long run are painted within a second, and older records come on demand`, { skip: !RUN }, async () => {
    const page = await open("#/runs");
    const begun = Date.now();
    await page.goto(`${home()}#/runs/${RUN}/${part}`);
    await page.locator(".virtual-row").first().waitFor();
    const took = Date.now() - begun;
    assert.ok(took <= 1000, `${took} ms`);
    assert.ok((await page.locator(".virtual-row").count()) <= 200);
    const list = page.locator(".virtual");
    for (let turn = 0; turn < 5; turn += 1) {
      await list.evaluate((element) => {
        element.scrollTop = 0;
      });
      await page.waitForTimeout(300);
    }
    assert.ok((await page.locator(".virtual-row").count()) <= 200);
    assert.ok(await list.evaluate((element) => element.scrollHeight > element.clientHeight * 10));
  });
}
