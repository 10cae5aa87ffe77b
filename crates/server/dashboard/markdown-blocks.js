// The blocks of Markdown: paragraphs, headings, lists, quotes, code, tables. Pure: text to plain nodes.

import { inline } from "./markdown-inline.js";

/** Returns the blocks of a text. */
export function blocks(text) {
  return read(String(text).replace(/\r\n?/g, "\n").split("\n"), 0);
}

/** Quotes and lists may nest, but not without end. */
const DEEPEST = 12;
// These read a line in a time that grows with its length only: at no place can two parts take the same character.
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/s;
const FENCE = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,6})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/s;
/** A cell of the line below the head of a table. */
const DIVIDER = /^:?-+:?$/;

function read(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] = readBlock(lines, at, depth);
    found.push(block);
    at = next;
  }
  return found;
}

function readBlock(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return readCode(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return [{ type: "heading", level: heading[1].length, children: inline(headingText(heading[2])) }, at + 1];
  if (RULE.test(line)) return [{ type: "rule" }, at + 1];
  if (depth < DEEPEST && QUOTE.test(line)) return readQuote(lines, at, depth);
  if (depth < DEEPEST && ITEM.test(line)) return readList(lines, at, depth);
  if (line.includes("|") && isDivider(lines[at + 1] ?? "")) return readTable(lines, at);
  return readParagraph(lines, at);
}

/** Returns the text of a heading without the signs that close it, as in `## Title ##`. */
function headingText(text) {
  const whole = text.trimEnd();
  let end = whole.length;
  while (whole[end - 1] === "#") end -= 1;
  const isClosed = end === 0 || /\s/.test(whole[end - 1]);
  return isClosed ? whole.slice(0, end).trimEnd() : whole;
}

function readCode(lines, at, [, indent, fence, info]) {
  const inner = [];
  let next = at + 1;
  while (next < lines.length && !closes(lines[next], fence)) {
    inner.push(lines[next].startsWith(indent) ? lines[next].slice(indent.length) : lines[next]);
    next += 1;
  }
  return [{ type: "block", language: info.trim().split(/\s+/)[0] ?? "", text: inner.join("\n") }, next + 1];
}

/** Returns true for a line that ends code: the signs of its fence, at least as many, and nothing else. */
function closes(line, fence) {
  const signs = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1] ?? "";
  return signs.length >= fence.length && signs[0] === fence[0];
}

function readQuote(lines, at, depth) {
  const inner = [];
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next])) {
    inner.push(lines[next].replace(QUOTE, ""));
    next += 1;
  }
  return [{ type: "quote", children: read(inner, depth + 1) }, next];
}

function readList(lines, at, depth) {
  const isOrdered = /\d/.test(ITEM.exec(lines[at])[2]);
  const start = isOrdered ? Number.parseInt(ITEM.exec(lines[at])[2], 10) : null;
  const items = [];
  let next = at;
  while (next < lines.length) {
    const match = ITEM.exec(lines[next]);
    if (match === null || /\d/.test(match[2]) !== isOrdered || RULE.test(lines[next])) break;
    const [inner, after] = readItem(lines, next, match);
    items.push(read(inner, depth + 1));
    next = after;
  }
  return [{ type: "list", start, items }, next];
}

/** Returns the lines of an item without their indentation, and the line after it. */
function readItem(lines, at, [, before, sign, space, rest]) {
  const inner = [rest];
  const indent = before.length + sign.length + Math.max(1, Math.min(space.length, 4));
  let next = at + 1;
  while (next < lines.length) {
    const line = lines[next];
    const depth = line.length - line.trimStart().length;
    if (line.trim() === "") {
      const following = lines.slice(next, next + 50).find((other) => other.trim() !== "");
      const goesOn = following !== undefined && following.length - following.trimStart().length > before.length + 1;
      if (!goesOn) break;
    } else if (depth <= before.length + 1 && (startsBlock(line) || lines[next - 1].trim() === "")) {
      break;
    }
    inner.push(line.slice(Math.min(indent, depth)));
    next += 1;
  }
  while (next < lines.length && lines[next].trim() === "" && ITEM.test(lines[next + 1] ?? "")) next += 1;
  return [inner, next];
}

function readTable(lines, at) {
  const head = cells(lines[at]);
  const rows = [];
  let next = at + 2;
  while (next < lines.length && lines[next].includes("|") && lines[next].trim() !== "") {
    rows.push(cells(lines[next]).slice(0, head.length));
    next += 1;
  }
  return [{ type: "table", head, rows }, next];
}

function isDivider(line) {
  return withoutFrame(line).split("|").every((cell) => DIVIDER.test(cell.trim()));
}

/** Returns a line of a table without the signs before its first cell and after its last one. */
function withoutFrame(line) {
  return line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
}

function cells(line) {
  return withoutFrame(line).split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replace(/\\\|/g, "|")));
}

function readParagraph(lines, at) {
  const inner = [lines[at].trimStart()];
  let next = at + 1;
  while (next < lines.length && lines[next].trim() !== "" && !startsBlock(lines[next])) {
    inner.push(lines[next].trimStart());
    next += 1;
  }
  return [{ type: "paragraph", children: inline(inner.join("\n").trimEnd()) }, next];
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line) || RULE.test(line);
}
