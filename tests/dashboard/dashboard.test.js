// All tests of the dashboard, in one process: a one-time link signs in once only.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, forbidden } from "./browser.js";

await import("./flows-runs.js");
await import("./flows-inbox.js");
await import("./flows-others.js");
await import("./views.js");
await import("./long-runs.js");

test("the page asked no other host, broke no policy and had no error", () => assert.deepEqual(forbidden, []));

after(close);
