// Keys and values of records as nodes: text stays text, and characters that cannot be seen, or that turn the direction of
// writing around, are named instead of obeyed.

import { element } from "./dom.js";
import { bytes, time } from "./format.js";

const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const MOST_NAMED = 500;
const MOST_MS = 8_640_000_000_000_000;

// The text as nodes, such as "a", <span>U+202E</span>, "b".
export function textNodes(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (found.length >= 2 * MOST_NAMED) break;
    const name = `U+${match[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    found.push(text.slice(at, match.index), element("span", { class: "unseen" }, name));
    at = match.index + 1;
  }
  found.push(text.slice(at).replace(UNSEEN, "\ufffd"));
  return found;
}

// A key or a value in a cell of a table.
export function contentInLine(content) {
  if (!content) return "";
  if (content.kind === "null" || content.kind === "empty") return element("span", { class: "faint" }, content.kind);
  const text = content.kind === "hex" ? hexOf(content.text) : content.text;
  return element("bdi", { class: "mono inline" }, textNodes(text), content.is_cut ? "…" : null);
}

// A key or a value with all that the server sent of it.
export function contentBlock(content, label) {
  if (content.kind === "null") return element("p", { class: "faint" }, "null");
  if (content.kind === "empty") return element("p", { class: "faint" }, "empty: no bytes at all");
  const attributes = { class: "content", tabindex: "0", role: "region", "aria-label": label, dir: "ltr" };
  return element("pre", attributes, textNodes(content.text), content.is_cut ? "…" : null);
}

export function kindOf(content) {
  const kinds = { json: "JSON", text: "text", hex: "bytes", null: "null", empty: "empty" };
  return content.kind === "null" ? "null" : `${kinds[content.kind]}, ${bytes(content.size_bytes)}`;
}

// Milliseconds as the server sends them, a text of up to 64 bits.
export function timeOf(timestamp) {
  const ms = Number(timestamp);
  if (timestamp === "-1") return "no timestamp";
  return Math.abs(ms) <= MOST_MS ? time(ms) : `${timestamp} ms`;
}

// The bytes alone of a dump's lines.
function hexOf(dump) {
  return dump.split("\n").map((line) => line.slice(10, 57).trim()).join(" ");
}
