// The vendored files are those of the list, and the page loads nothing else.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const FOLDER = new URL("../", import.meta.url);
const read = (name) => readFileSync(new URL(name, FOLDER));
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const served = readdirSync(FOLDER).filter((name) => /\.(js|css|html|svg)$/.test(name));
const own = served.filter((name) => !["preact.js", "hooks.js"].includes(name));

test("vendored files have the hashes of the list, and their licence is there", () => {
  const { files } = JSON.parse(read("vendored.json"));
  assert.deepEqual(files.map(({ file }) => file).sort(), ["hooks.js", "preact.LICENSE", "preact.js"]);
  for (const { file, sha256: expected, license_file: license } of files) {
    assert.equal(sha256(read(file)), expected, file);
    assert.ok(read(license).length > 500, license);
  }
});

test("vendored files are the published ones but for the changes of the list", () => {
  const { files } = JSON.parse(read("vendored.json"));
  const maps = { "preact.js": "preact.mjs.map", "hooks.js": "hooks.mjs.map" };
  for (const { file, source_sha256: expected } of files.filter(({ file: name }) => name in maps)) {
    const text = read(file).toString().replace('from"./preact.js"', 'from"preact"');
    assert.equal(sha256(`${text}//# sourceMappingURL=${maps[file]}\n`), expected, file);
  }
});

test("all files together are small, as they are sent to a browser", () => {
  const size = served.reduce((sum, name) => sum + gzipSync(read(name), { level: 9 }).length, 0);
  assert.ok(size <= 150 * 1024, `${size} bytes`);
});

test("modules import files that are there", () => {
  for (const name of own.filter((file) => file.endsWith(".js"))) {
    for (const [, from] of read(name).toString().matchAll(/from "([^"]+)"/g)) {
      assert.ok(from.startsWith("./") && served.includes(from.slice(2)), `${name} imports ${from}`);
    }
  }
});

test("nothing is inline, and nothing comes from another host", () => {
  const html = read("index.html").toString();
  assert.ok(!/<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style/i.test(html), "index.html");
  for (const name of own) {
    const text = read(name).toString();
    assert.ok(!/innerHTML|dangerouslySetInnerHTML|\beval\(|new Function|document\.write|setAttribute\("style"/.test(text), name);
    if (name !== "icon.svg") assert.ok(!/["'(]https?:\/\/[a-z]/i.test(text), `${name} has an address`);
    if (name.endsWith(".css")) assert.ok(!/url\(|@import/.test(text), name);
  }
});

test("each file opens with what it is for, and is short", () => {
  for (const name of own.filter((file) => file.endsWith(".js"))) {
    const lines = read(name).toString().split("\n");
    assert.match(lines[0], /^\/\/ [A-Z]/, name);
    assert.ok(lines.length < 400, name);
  }
});
