// Numbers, times and texts from outside as people read them. Pure.

/** The hidden characters of `archon_types`, without line ends and tabs: they control, turn the writing around, or are invisible. */
const HIDDEN = new RegExp(
  "[\\u{0}-\\u{8}\\u{b}-\\u{1f}\\u{7f}-\\u{9f}\\u{ad}\\u{34f}\\u{61c}\\u{115f}\\u{1160}\\u{17b4}\\u{17b5}\\u{180b}-\\u{180f}" +
    "\\u{200b}-\\u{200f}\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}\\u{3164}\\u{feff}\\u{ffa0}\\u{fff0}-\\u{fffb}\\u{e0000}-\\u{e0fff}]",
  "gu",
);

/** A text that a person may approve, as in the terminal: no character is removed, and hidden ones are shown by their number. */
export function visible(text) {
  return String(text ?? "").replace(HIDDEN, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

/** As `visible`, in one line: line ends and tabs are shown, too. A name cannot look like several. */
export function visibleLine(text) {
  return visible(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

/** A value as JSON whose hidden characters are escapes of JSON: it is read back as the same value. */
export function visibleJson(value, space) {
  const escaped = (character) => character.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
  return (JSON.stringify(value, null, space) ?? "").replace(HIDDEN, escaped);
}

/** A text from outside that nobody approves: as `visible`, without carriage returns. */
export function printable(text) {
  return visible(String(text ?? "").replaceAll("\r", ""));
}

/** Money in millionths of a currency unit; an empty text if there is no price. */
export function money(micros) {
  if (micros === null || micros === undefined) return "";
  const units = micros / 1e6;
  if (units === 0) return "0.00";
  if (units < 0.01) return units.toFixed(4);
  return units.toFixed(2);
}

/** A count with separators: 12345 is 12,345. */
export function count(number) {
  return (number ?? 0).toLocaleString("en-US");
}

/** A count in few characters: 12345 is 12.3k. */
export function short(number) {
  const value = number ?? 0;
  if (value < 1000) return String(value);
  if (value < 1e6) return `${trim(value / 1e3)}k`;
  return `${trim(value / 1e6)}M`;
}

/** A duration in milliseconds. */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${trim(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

/** The time since a moment, in words. */
export function ago(then, now) {
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** The local time of a moment, with milliseconds. */
export function clock(ms) {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** The local date and time of a moment. */
export function dateTime(ms) {
  const date = new Date(ms);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** A share from 0 to 1 in percent. */
export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "";
  return `${trim(share * 100)} %`;
}

/** A text from outside as one printable line of at most `most` characters. */
export function oneLine(text, most = 200) {
  const line = printable(text).replace(/\s+/g, " ").trim();
  const characters = Array.from(line.slice(0, most * 2 + 2));
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : line;
}

/** `1 run`, `2 runs`. */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

function trim(value) {
  return value < 10 ? String(Math.round(value * 10) / 10) : String(Math.round(value));
}

function two(number) {
  return String(number).padStart(2, "0");
}
