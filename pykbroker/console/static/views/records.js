// A topic's records: pages of them by partition, offset and time, a search by key, and a form for a new one. The address
// has all that is asked for.

import { element } from "../dom.js";
import { plural } from "../format.js";
import { field, valuesOf } from "../forms.js";
import { produceDialog } from "../produce_dialog.js";
import { searchByKey } from "../record_search.js";
import { addressOf, recordTable } from "../record_table.js";

const ASKED = ["partition", "order", "from", "to", "committed", "key", "key_kind", "size"];
const MOST_ERRORS = 5;

export async function show(view) {
  const { name } = view.params;
  const address = `/topics/${encodeURIComponent(name)}`;
  const asked = Object.fromEntries([...ASKED, "before", "after"].map((each) => [each, view.query.get(each) ?? ""]));
  const list = element("section", { class: "panel" });
  const written = element("p", { role: "status" });
  const failure = asked.key ? null : await load(view, address, asked, list).catch((error) => error);
  view.show(`Topic ${name}`, form(view, address, asked, written, list), written, list);
  if (asked.key) searchByKey(view, address, asked, list);
  else if (failure) view.fail(failure);
}

async function load(view, address, asked, list) {
  const page = await view.get(`${address}/records`, asked);
  list.replaceChildren(
    element("p", { class: "hint" }, told(page)),
    recordTable(address, page.rows),
    neighbours(address, asked, page),
  );
}

function told(page) {
  const errors = Object.entries(page.errors);
  const shown = errors.slice(0, MOST_ERRORS).map(([partition, error]) => `${partition}: ${error}`);
  const lines = [
    page.first === null ? plural(page.partitions, "partition") : `Offsets ${page.first} to ${page.end} (not included)`,
    page.left_out ? `${plural(page.left_out, "further partition")} with records left out: choose one` : null,
    page.is_short ? "a short page, since reading more would take too long" : null,
    errors.length ? `not read: ${shown.join(", ")}${errors.length > shown.length ? " …" : ""}` : null,
  ];
  return `${lines.filter(Boolean).join("; ")}.`;
}

function neighbours(address, asked, page) {
  const isNewest = asked.order !== "oldest";
  const older = page.older && { before: page.older };
  const newer = page.newer && { after: page.newer };
  const link = (text, edge) =>
    edge ? element("a", { class: "button quiet", href: addressWith(address, { ...asked, before: "", after: "", ...edge }) }, text) : null;
  return element(
    "nav",
    { class: "pager", "aria-label": "Pages of records" },
    link("Previous page", isNewest ? newer : older),
    link("Next page", isNewest ? older : newer),
  );
}

function addressWith(address, asked) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    if (value !== "" && value !== false && value !== null) query.set(name, String(value));
  }
  const text = query.toString();
  return `${address}/records${text ? `?${text}` : ""}`;
}

// ---- what is asked for

function form(view, address, asked, written, list) {
  const produce = () =>
    produceDialog(view, address, (record) => {
      written.replaceChildren(
        "Written: ",
        element("a", { href: addressOf(address, record.partition, record.offset) }, `partition ${record.partition}, offset ${record.offset}`),
      );
      if (!asked.key) load(view, address, asked, list).catch((error) => view.fail(error));
    });
  const found = element(
    "form",
    { class: "panel", role: "search" },
    element(
      "div",
      { class: "bar fields" },
      field({ label: "Partition", name: "partition", type: "number", min: 0, value: asked.partition, placeholder: "all" }),
      field({ label: "Order", name: "order", type: "select", value: asked.order, options: [["", "Newest first"], ["oldest", "Oldest first"]] }),
      field({ label: "From", name: "from", value: asked.from, placeholder: "start", maxlength: 100 }),
      field({ label: "To", name: "to", value: asked.to, placeholder: "end", maxlength: 100 }),
      field({ label: "Key", name: "key", value: asked.key, maxlength: 10_000 }),
      field({ label: "Key is", name: "key_kind", type: "select", value: asked.key_kind, options: [["", "Text"], ["hex", "Hex"]] }),
      field({ label: "Committed records alone", name: "committed", type: "checkbox", value: asked.committed === "true" }),
    ),
    element("p", { class: "hint" }, "From and to: an offset, start+10, end-100, 5m ago, or a date and time such as 2026-11-29 10:00."),
    element(
      "div",
      { class: "bar buttons" },
      element("button", { type: "submit" }, "Show records"),
      view.mayChange ? element("button", { type: "button", class: "quiet", onclick: produce }, "Produce a record") : null,
    ),
  );
  found.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = valuesOf(found);
    Object.assign(values, { from: placeOf(values.from), to: placeOf(values.to), size: asked.size });
    view.go(addressWith(address, values));
  });
  return found;
}

// A date, or a date and time, is of the reader's own zone: the address, which others may get, has it in UTC.
function placeOf(text) {
  const found = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?))?$/.exec(text.trim());
  if (!found) return text.trim();
  const moment = new Date(`${found[1]}T${found[2] ?? "00:00"}`);
  return Number.isNaN(moment.getTime()) ? text.trim() : moment.toISOString();
}
