// The inline part of Markdown: emphasis, code, links. Pure: text to plain nodes. There is no HTML, and no image: an image
// becomes its alternative text with its address as text, so that a model cannot send anything out by an address that
// the page would load.

/** Returns the nodes of one line or paragraph: texts, and `{type, children}` or `{type, text}`. */
export function inline(source) {
  return parse(source, 0);
}

/** Links may nest in emphasis and back, but not without end. */
const DEEPEST = 8;
/** The end of an emphasis or a code is looked for in this many characters, so that signs without an end are not slow. */
const FARTHEST = 4000;
const ESCAPED = /^\\([\\`*_{}[\]()#+\-.!~|<>])/;
/** `(address "title")`. The spaces have a bound: three parts can take the same ones, so that many would be slow. */
const TARGET = /^\(\s{0,9}<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s{1,9}"[^"\n]{0,500}")?\s{0,9}\)/;
const ADDRESS = /^https?:\/\/[^\s<>"'`]+/i;

function parse(source, depth) {
  const nodes = [];
  let text = "";
  let at = 0;
  /** For each fence, the place before which no end of it was found: it is not looked for there again. */
  const searched = new Map();
  const add = (node) => {
    if (text !== "") nodes.push(text);
    text = "";
    nodes.push(node);
  };
  while (at < source.length) {
    const found = depth > DEEPEST ? null : special(source, at, depth, searched);
    if (found === null) {
      text += source[at];
      at += 1;
      continue;
    }
    at += found.length;
    if (typeof found.node === "string") text += found.node;
    else add(found.node);
  }
  if (text !== "") nodes.push(text);
  return nodes;
}

function special(source, at, depth, searched) {
  switch (source[at]) {
    case "\\":
      return escape(source, at);
    case "`":
      return code(source, at, searched);
    case "*":
    case "_":
    case "~":
      return emphasis(source, at, depth, searched);
    case "!":
      return source[at + 1] === "[" ? image(source, at) : null;
    case "[":
      return linked(source, at, depth);
    case "<":
      return enclosed(source, at);
    case "h":
    case "H":
      return bare(source, at);
    case "\n":
      return /^ *\S/.test(source.slice(at + 1)) && source.slice(0, at).endsWith("  ")
        ? { node: { type: "break" }, length: 1 }
        : null;
    default:
      return null;
  }
}

function escape(source, at) {
  const match = ESCAPED.exec(source.slice(at, at + 2));
  return match ? { node: match[1], length: 2 } : null;
}

function code(source, at, searched) {
  let ticks = 1;
  while (source[at + ticks] === "`") ticks += 1;
  const fence = "`".repeat(ticks);
  const near = source.slice(0, at + FARTHEST);
  let end = near.indexOf(fence, Math.max(at + ticks, searched.get(fence) ?? 0));
  while (end >= 0 && near[end + ticks] === "`") {
    let next = end;
    while (near[next] === "`") next += 1;
    end = near.indexOf(fence, next);
  }
  // Without an end, all of the ticks are text, and are not looked at one by one.
  if (end < 0) {
    searched.set(fence, near.length - ticks);
    return { node: fence, length: ticks };
  }
  let inner = source.slice(at + ticks, end).replace(/\n/g, " ");
  if (inner.startsWith(" ") && inner.endsWith(" ") && /[^ ]/.test(inner)) inner = inner.slice(1, -1);
  return { node: { type: "code", text: inner }, length: end + ticks - at };
}

function emphasis(source, at, depth, searched) {
  const sign = source[at];
  let width = 1;
  while (source[at + width] === sign && width < 3) width += 1;
  if (sign === "~" && width !== 2) return { node: sign.repeat(width), length: width };
  const fence = sign.repeat(width);
  const next = source[at + width];
  const within = sign === "_" && /\w/.test(source[at - 1] ?? " ");
  if (next === undefined || /\s/.test(next) || within) return { node: fence, length: width };
  const near = source.slice(0, at + FARTHEST);
  const end = closing(near, Math.max(at + width, searched.get(fence) ?? 0), fence, sign);
  if (end < 0 || end === at + width) {
    searched.set(fence, near.length - width);
    return { node: fence, length: width };
  }
  const children = parse(source.slice(at + width, end), depth + 1);
  const type = sign === "~" ? "deleted" : width === 1 ? "emphasis" : "strong";
  const node = width === 3 ? { type, children: [{ type: "emphasis", children }] } : { type, children };
  return { node, length: end + width - at };
}

function closing(source, from, fence, sign) {
  let end = source.indexOf(fence, from);
  while (end >= 0) {
    const longer = fence.length < 3 && source[end + fence.length] === sign && source[end - 1] !== sign;
    const opens = /\s/.test(source[end - 1]) || source[end - 1] === "\\";
    const inWord = sign === "_" && /\w/.test(source[end + fence.length] ?? " ");
    if (!longer && !opens && !inWord) return end;
    let next = end + fence.length;
    while (source[next] === sign) next += 1;
    end = source.indexOf(fence, next);
  }
  return -1;
}

function image(source, at) {
  const found = bracketed(source, at + 1);
  if (found === null) return null;
  const alt = found.label === "" ? "image" : found.label;
  return { node: { type: "image", text: `${alt} (${found.address})` }, length: found.length + 1 };
}

function linked(source, at, depth) {
  const found = bracketed(source, at);
  if (found === null) return null;
  const children = parse(found.label, depth + 1);
  return { node: linkNode(found.address, children), length: found.length };
}

/** Reads `[label](address "title")`. */
function bracketed(source, at) {
  let open = 0;
  let end = at;
  // A label is short; without this bound, many open brackets would be slow.
  const last = Math.min(source.length, at + 2000);
  for (; end < last; end += 1) {
    if (source[end] === "\\") end += 1;
    else if (source[end] === "[") open += 1;
    else if (source[end] === "]" && (open -= 1) === 0) break;
  }
  if (end >= last || source[end + 1] !== "(") return null;
  const match = TARGET.exec(source.slice(end + 1, end + 3000));
  if (match === null) return null;
  return { label: source.slice(at + 1, end), address: match[1], length: end + 1 + match[0].length - at };
}

function enclosed(source, at) {
  const match = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i.exec(source.slice(at, at + 2100));
  return match ? { node: linkNode(match[1], [match[1]]), length: match[0].length } : null;
}

function bare(source, at) {
  if (/\w/.test(source[at - 1] ?? " ")) return null;
  const match = ADDRESS.exec(source.slice(at, at + 2100));
  if (match === null) return null;
  let end = match[0].length;
  while (".,;:!?)]".includes(match[0][end - 1])) end -= 1;
  const address = match[0].slice(0, end);
  return { node: linkNode(address, [address]), length: address.length };
}

/** A link to a page or a mailbox; every other address stays text. */
function linkNode(address, children) {
  return isSafe(address)
    ? { type: "link", address, children }
    : { type: "plain", children: [...children, address === "" ? "" : ` (${address})`] };
}

/** Returns true for addresses that the page links to: `http`, `https` and `mailto`. */
export function isSafe(address) {
  return /^(https?:\/\/|mailto:)[^\s\u0000-\u001f]+$/i.test(address);
}
