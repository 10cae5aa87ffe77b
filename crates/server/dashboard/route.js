// The place of the page in its address: `#/runs/RUN/records/7?status=running`. Pure.

/** Parses a hash into a path of parts and a query. */
export function parse(hash) {
  const text = hash.replace(/^#?\/?/, "");
  const [path, query = ""] = split(text, "?");
  const parts = path.split("/").filter((part) => part !== "").map(decode);
  return { parts: parts.length > 0 ? parts : ["runs"], query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the hash of a place. Values of the query that are empty are left out. */
export function link(parts, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== "" && value !== null && value !== undefined && value !== false) search.set(name, String(value));
  }
  const path = parts.map((part) => encodeURIComponent(String(part))).join("/");
  const text = search.toString();
  return text === "" ? `#/${path}` : `#/${path}?${text}`;
}

/** Returns the link to a run, and to one of its records. */
export function runLink(run, seq) {
  return seq === undefined || seq === null ? link(["runs", run]) : link(["runs", run, "records", seq]);
}

function split(text, sign) {
  const at = text.indexOf(sign);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
