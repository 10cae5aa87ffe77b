// The keys of the page: the browser's events become commands, and rows get the focus.

import { useEffect } from "./hooks.js";
import { commandOf, rowAfter } from "./keys.js";

/** The handlers of the views that are shown, the newest last. */
const handlers = [];

/** Handles commands by name while the component is there; a handler that returns false leaves the command to others. */
export function useCommands(commands, deps) {
  useEffect(() => {
    handlers.push(commands);
    return () => handlers.splice(handlers.indexOf(commands), 1);
  }, deps);
}

/** Listens to the keys of the document. Returns a function that ends this. */
export function listen() {
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

function press(event) {
  const target = document.activeElement ?? document.body;
  const command = commandOf(event, focusOf(target));
  if (command === null) return;
  const found = handlers.findLast((commands) => commands[command] !== undefined && commands[command]() !== false);
  if (found !== undefined || usual(command, target)) event.preventDefault();
}

/** Returns what has the focus, as `commandOf` wants it. */
function focusOf(element) {
  if (document.querySelector("dialog[open]") !== null) return "dialog";
  if (element.matches("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]")) return "field";
  if (element.matches("[data-row]")) return "row";
  return element.matches("body, main, h1, h2") ? "page" : "control";
}

function usual(command, target) {
  switch (command) {
    case "next":
    case "previous":
      return move(command, target);
    case "search": {
      const field = document.querySelector("main [data-search]");
      field?.focus();
      return field !== null;
    }
    case "close":
      // Dialogs close themselves.
      if (target.matches("input, textarea, select")) target.blur();
      return false;
    default:
      // A row is a link or a button, which the browser opens.
      return false;
  }
}

function move(command, target) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  const to = rowAfter(command, rows.indexOf(target.closest("[data-row]")), rows.length);
  if (to < 0) return false;
  // A question takes keys only if the person sees its card, not the heading alone.
  rows[to].closest(".question")?.scrollIntoView({ block: "nearest" });
  rows[to].focus();
  rows[to].scrollIntoView({ block: "nearest" });
  return true;
}
