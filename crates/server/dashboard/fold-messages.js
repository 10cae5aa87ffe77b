// Messages as items: what a person wrote, the files with it, and what was recalled for it. Pure.

/** The marks of a stop by the person, which models read and people need not. */
const MARKS = new Set([
  "[Request interrupted by user]",
  "[Request interrupted by user for tool use]",
  "[Request interrupted by user due to permission denial]",
  "[Request cancelled by user]",
]);

/** Returns the item of a `message_added`; null for data of a program and for the mark of a stop. */
export function messageItem(record) {
  const { message, source } = record;
  if (message.role !== "user") return null;
  const { written, attached, recalled } = partsOf(message);
  const text = joinText(written);
  if (attached.length === 0 && written.length === 1 && MARKS.has(text)) return null;
  return {
    key: `m${record.seq}`,
    kind: "message",
    seq: record.seq,
    at: record.at,
    version: 0,
    source,
    speaker: message.speaker ?? "person",
    text,
    files: [...attached, ...written.filter((block) => block.type === "media").map((block) => block.name ?? block.mime_type)],
    images: written.filter((block) => block.type === "image").length,
    recalled: recalled.length,
  };
}

/** Splits a user message: the last blocks are recalled memories, and those before are the attached files. */
export function partsOf(message) {
  const content = message.content ?? [];
  const own = content.slice(0, Math.max(0, content.length - (message.recalled ?? 0)));
  const names = message.attached ?? [];
  const written = own.slice(0, Math.max(0, own.length - names.length));
  const attached = own.length - written.length === names.length ? names : names.slice(0, own.length - written.length);
  return { written, attached, recalled: content.slice(own.length) };
}

/** Joins the text of blocks with line breaks. */
export function joinText(content) {
  return (content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
}
