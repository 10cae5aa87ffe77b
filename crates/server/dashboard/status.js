// The status of a run, a call or a step: a sign, a word and a colour, so that none of them stands alone.

import { h } from "./preact.js";

const SIGNS = {
  created: ["○", "quiet"],
  requested: ["○", "quiet"],
  pending: ["○", "quiet"],
  active: ["▶", "good"],
  running: ["▶", "busy"],
  asking: ["?", "asks"],
  suspended: ["?", "asks"],
  waiting: ["?", "asks"],
  interrupted: ["‖", "warn"],
  paused: ["‖", "warn"],
  disabled: ["✗", "bad"],
  finished: ["✓", "good"],
  completed: ["✓", "good"],
  success: ["✓", "good"],
  failed: ["✗", "bad"],
  error: ["✗", "bad"],
  timeout: ["✗", "bad"],
  unreadable: ["✗", "bad"],
  lost: ["✗", "bad"],
  expired: ["⊘", "warn"],
  refused: ["⊘", "warn"],
  limit: ["■", "warn"],
  cancelled: ["■", "warn"],
  skipped: ["–", "quiet"],
};

/** Returns the sign of a status and the name of its colour. */
export function signOf(status) {
  return SIGNS[status] ?? ["·", "quiet"];
}

/** Returns a status in words. */
export function wordOf(status) {
  if (status === "suspended") return "waits for a person";
  return String(status ?? "").replaceAll("_", " ");
}

export function Status({ status }) {
  const [sign, look] = signOf(status);
  return h("span", { class: `status ${look}` }, h("span", { "aria-hidden": "true" }, `${sign} `), wordOf(status));
}
