// The official Node.js client against agents as models: whole and streamed, over both endpoints.
//
//     node openai_clients.mjs FOLDER URL
//
// FOLDER has the package `openai` in its `node_modules`.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [folder, baseURL] = process.argv.slice(2);
const OpenAI = createRequire(`${folder}/`)("openai").default;
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 2 });
const messages = (content) => [{ role: "user", content }];
const chat = (text, fields = {}) =>
  client.chat.completions.create({ model: "desk", messages: messages(text), ...fields });

async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

async function checkModels() {
  const models = await all(await client.models.list());
  assert.deepEqual(models.map((model) => model.id), ["desk", "brief"]);
}

async function checkChat() {
  for (const [text, expected] of [
    ["hello you", "You said: hello you"],
    ["look it", "I look it up.\n\nDone: it is 42."],
  ]) {
    const whole = await chat(text);
    assert.equal(whole.choices[0].message.content, expected);
    assert.equal(whole.choices[0].finish_reason, "stop");
    const chunks = await all(await chat(text, { stream: true, stream_options: { include_usage: true } }));
    const spoken = chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.delta.content ?? ""));
    assert.equal(spoken.join(""), expected);
    assert.deepEqual(chunks.at(-1).usage, whole.usage);
    const helper = client.chat.completions.stream({ model: "desk", messages: messages(text) });
    assert.equal(await helper.finalContent(), expected);
  }
  const { data, response } = await chat("step Paris").withResponse();
  assert.equal(data.choices[0].finish_reason, "length");
  assert.ok(data.choices[0].message.content.includes(response.headers.get("x-archon-run")));
}

async function checkResponses() {
  for (const [input, expected] of [
    ["hello you", ["You said: hello you"]],
    ["look it", ["I look it up.", "Done: it is 42."]],
  ]) {
    const whole = await client.responses.create({ model: "desk", input });
    assert.deepEqual(whole.output.map((item) => item.content[0].text), expected);
    assert.equal(whole.status, "completed");
    const events = await all(await client.responses.create({ model: "desk", input, stream: true }));
    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
    const spoken = events.filter((event) => event.type === "response.output_text.delta");
    assert.equal(spoken.map((event) => event.delta).join(""), expected.join(""));
    assert.deepEqual(events.at(-1).response.usage, whole.usage);
    const final = await client.responses.stream({ model: "desk", input }).finalResponse();
    assert.equal(final.output_text, whole.output_text);
    const read = await client.responses.retrieve(whole.id);
    assert.equal(read.output_text, whole.output_text);
  }
  const first = await client.responses.create({ model: "desk", input: "first" });
  const next = await client.responses.create({ model: "desk", input: "recall", previous_response_id: first.id });
  assert.equal(next.output_text, "user: first\nassistant: You said: first\nuser: recall");
  const waiting = await client.responses.create({ model: "desk", input: "step Paris" });
  assert.equal(waiting.status, "incomplete");
  const cancelled = await client.responses.cancel(waiting.id);
  assert.equal(cancelled.status, "cancelled");
  const failed = await client.responses.create({ model: "desk", input: "fail" });
  assert.equal(failed.status, "failed");
}

async function checkErrors() {
  const tool = { type: "function", function: { name: "f", parameters: {} } };
  for (const [field, value] of [["tools", [tool]], ["n", 2], ["seed", 7], ["temperature", 0.5]]) {
    await assert.rejects(chat("hello", { [field]: value }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, field);
      return true;
    });
  }
  await assert.rejects(client.responses.create({ model: "nobody", input: "hello" }), OpenAI.NotFoundError);
  await assert.rejects(chat("fail"), (error) => error.status === 502 && error.code === "run_failed");
  await assert.rejects(chat("fail", { stream: true }).then(all), (error) => error.code === "run_failed");
}

await checkModels();
await checkChat();
await checkResponses();
await checkErrors();
console.log("openai for Node.js: both endpoints, whole and streamed");
