// The map of keys, and the pause before a question takes them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EARLY_MS, KEYS, commandOf, isOnScreen, rowAfter, takesKeys } from "../keys.js";

const key = (name, more = {}) => ({ key: name, ctrlKey: false, metaKey: false, altKey: false, repeat: false, isComposing: false, ...more });

test("commandOf finds the command of each key of the help", () => {
  for (const { keys, command } of KEYS) {
    for (const name of keys) assert.equal(commandOf(key(name), "row"), command, name);
  }
});

test("commandOf leaves keys to a field and to a dialog, but not Escape", () => {
  for (const focus of ["field", "dialog"]) {
    for (const { keys, command } of KEYS) {
      for (const name of keys) assert.equal(commandOf(key(name), focus), command === "close" ? "close" : null, `${focus} ${name}`);
    }
  }
});

test("commandOf leaves keys with a modifier to the browser", () => {
  for (const modifier of ["ctrlKey", "metaKey", "altKey", "isComposing"]) {
    assert.equal(commandOf(key("y", { [modifier]: true }), "page"), null, modifier);
  }
});

test("commandOf lets arrows scroll where a control has the focus", () => {
  assert.deepEqual([commandOf(key("ArrowDown"), "control"), commandOf(key("j"), "control")], [null, "next"]);
});

test("commandOf answers no question with a key that is held down", () => {
  const held = { repeat: true };
  assert.deepEqual(["y", "n", "e", "j"].map((name) => commandOf(key(name, held), "page")), [null, null, null, "next"]);
});

test("takesKeys waits until the question was on the screen for a moment", () => {
  assert.deepEqual([takesKeys(null, 1000), takesKeys(1000, 1000 + EARLY_MS - 1), takesKeys(1000, 1000 + EARLY_MS)], [false, false, true]);
});

test("isOnScreen wants half of a card, or a card that fills half of the screen", () => {
  const seen = (top, bottom) => isOnScreen({ top, bottom }, 600);
  assert.deepEqual([seen(0, 200), seen(-100, 100), seen(-101, 99), seen(500, 700), seen(501, 701)], [true, true, false, true, false]);
  assert.deepEqual([seen(-2000, 2000), seen(-2000, 300), seen(-2000, 299), seen(300, 5000), seen(301, 5000)], [true, true, false, true, false]);
  assert.deepEqual([seen(-200, 0), seen(600, 800), seen(-900, -700), seen(100, 100)], [false, false, false, false]);
});

test("rowAfter stays within the rows", () => {
  assert.deepEqual(
    [rowAfter("next", -1, 3), rowAfter("previous", -1, 3), rowAfter("next", 2, 3), rowAfter("previous", 0, 3), rowAfter("next", 0, 3), rowAfter("next", -1, 0)],
    [0, 2, 2, 0, 1, -1],
  );
});
