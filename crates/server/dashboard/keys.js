// The map from keys to commands. Pure: the browser's events come from `keyboard.js`.

/** What each key does, for the help. */
export const KEYS = [
  { keys: ["j", "ArrowDown"], command: "next", does: "go to the next row" },
  { keys: ["k", "ArrowUp"], command: "previous", does: "go to the row before" },
  { keys: ["Enter"], command: "open", does: "open the row" },
  { keys: ["/"], command: "search", does: "search" },
  { keys: ["y"], command: "yes", does: "in the inbox: yes to the question" },
  { keys: ["n"], command: "no", does: "in the inbox: no to the question" },
  { keys: ["e"], command: "edit", does: "in the inbox: change the arguments" },
  { keys: ["?"], command: "help", does: "show these keys" },
  { keys: ["Escape"], command: "close", does: "close a dialog, or leave a field" },
];

/** A question takes keys and clicks only after it was at its place on the screen for this time, in milliseconds. */
export const EARLY_MS = 400;

const COMMANDS = new Map(KEYS.flatMap(({ keys, command }) => keys.map((key) => [key, command])));

/**
 * Returns the command of a key; null if the key belongs to the element that has the focus.
 *
 * `focus` is what has it: `field` (text is typed), `dialog`, `control` (a button, a link), `row` or `page`. Arrows move
 * between rows only from a row or the page, so that they still scroll and choose elsewhere. A key with a modifier is the
 * browser's. Held-down keys move, and do nothing else.
 */
export function commandOf(event, focus) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return null;
  const command = COMMANDS.get(event.key) ?? null;
  if (command === null) return null;
  if (command === "close") return command;
  if (focus === "field" || focus === "dialog") return null;
  if (event.key.startsWith("Arrow") && focus !== "row" && focus !== "page") return null;
  // The browser opens what has the focus.
  if (command === "open" && focus !== "row") return null;
  const moves = command === "next" || command === "previous";
  return event.repeat && !moves ? null : command;
}

/** Returns true if a question that is on the screen since `shownAt` takes keys at `now`. */
export function takesKeys(shownAt, now) {
  return shownAt !== null && now - shownAt >= EARLY_MS;
}

/** Returns true if a person sees what is between `top` and `bottom`: half of it, or what fills half of a screen of this height. */
export function isOnScreen({ top, bottom }, height) {
  const seen = Math.min(bottom, height) - Math.max(top, 0);
  return seen > 0 && seen >= Math.min(bottom - top, height) / 2;
}

/** Returns the index of the row to go to; -1 if there is no row. `current` is -1 if no row has the focus. */
export function rowAfter(command, current, rows) {
  if (rows === 0) return -1;
  if (current < 0) return command === "next" ? 0 : rows - 1;
  const step = command === "next" ? 1 : -1;
  return Math.min(rows - 1, Math.max(0, current + step));
}
