// All tests of the dashboard, in one process: a one-time link signs in once only.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { close, closePages, forbidden } from "./browser.js";

// Before the tests: a page that stays open keeps asking the server, and slows those after it.
afterEach(closePages);

await import("./flows-runs.js");
await import("./flows-inbox.js");
await import("./flows-others.js");
await import("./views.js");
await import("./long-runs.js");

test("the page asked no other host, broke no policy and had no error", () => assert.deepEqual(forbidden, []));

after(close);
