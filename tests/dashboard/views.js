// Each view in light and dark: axe finds nothing serious, and a picture for people to look at.

import { test } from "node:test";
import { checkAccess, go, open, picture, start, waitForStatus } from "./browser.js";

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing serious in any view, ${colorScheme}`, async () => {
    const page = await open("#/playground", { colorScheme });
    const done = await start(page, "tour");
    await waitForStatus(page, done, "finished");
    await checkAccess(page, "playground");
    await picture(page, `playground-${colorScheme}`);
    const asking = await start(page, "reroute Heidelberg");
    await waitForStatus(page, asking, "suspended");
    const places = {
      runs: "#/runs", inbox: `#/approvals?run=${asking}`, sessions: "#/sessions", memories: "#/memories", tools: "#/tools",
      transcript: `#/runs/${done}`, waterfall: `#/runs/${done}/waterfall`, records: `#/runs/${done}/records/1`,
      graph: `#/runs/${process.env.DASHBOARD_PLAN_RUN ?? done}/graph`, usage: `#/runs/${done}/usage`,
      waiting: `#/runs/${asking}`, unknown: "#/runs/run_none",
    };
    for (const [name, place] of Object.entries(places)) {
      await go(page, place);
      await page.getByText(/^Loading /).first().waitFor({ state: "detached" });
      await checkAccess(page, name);
      await picture(page, `${name}-${colorScheme}`);
    }
    await go(page, `#/runs/${done}/records/1`);
    await page.getByRole("button", { name: "Fork here" }).click();
    await checkAccess(page, "fork");
    await picture(page, `fork-${colorScheme}`);
    await page.keyboard.press("Escape");
    await go(page, `#/approvals?run=${asking}`);
    await page.getByRole("button", { name: "No", exact: true }).click();
    await waitForStatus(page, asking, "finished");
  });
}
