// Keys and values of records as nodes: text stays text.

import { element } from "./dom.js";
import { bytes, time } from "./format.js";
import { textNodes } from "./unseen.js";

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
  return timestamp === "-1" ? "no timestamp" : time(timestamp);
}

// The bytes alone of a dump's lines.
function hexOf(dump) {
  return dump.split("\n").map((line) => line.slice(10, 57).trim()).join(" ");
}
