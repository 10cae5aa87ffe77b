// A message that is sent again after a broken connection starts no second run.

import assert from "node:assert/strict";
import { test } from "node:test";

/** A hidden page, which opens no stream. */
globalThis.document = { baseURI: "http://localhost/", hidden: true, addEventListener() {}, removeEventListener() {} };
globalThis.cancelAnimationFrame = () => {};
const { Conversation } = await import("../conversation.js");

/** Answers each start with the next of `answers`, and returns the keys that were sent. */
function serve(answers) {
  const keys = [];
  globalThis.fetch = async (url, { headers }) => {
    if (!url.pathname.endsWith("/v1/runs")) return Response.json({ records: [] });
    keys.push(headers["idempotency-key"]);
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError("the connection broke");
    return Response.json(answer, { status: 201 });
  };
  return keys;
}

const how = { agent: null, when: "steer" };

test("send keeps its key after a broken connection, until the text changes", async () => {
  const keys = serve([]);
  const conversation = new Conversation(null);
  for (const text of ["one", "one", "two"]) await assert.rejects(conversation.send(text, how), /the connection broke/);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.equal(keys[1], keys[0]);
  assert.notEqual(keys[2], keys[0]);
});

test("send has another key for another agent, and for the same text after an answer", async () => {
  const keys = serve([undefined, undefined, { run: "r", session: "s", how: "new" }]);
  const conversation = new Conversation(null);
  await assert.rejects(conversation.send("one", how));
  await assert.rejects(conversation.send("one", { ...how, agent: { id: "a", kind: "loop" } }));
  await conversation.send("one", { ...how, agent: { id: "a", kind: "loop" } });
  assert.notEqual(keys[1], keys[0]);
  assert.equal(keys[2], keys[1]);
  conversation.logs = [];
  conversation.session = null;
  await assert.rejects(conversation.send("one", { ...how, agent: { id: "a", kind: "loop" } }));
  assert.notEqual(keys[3], keys[2]);
  conversation.close();
});
