// One record: where it is, its headers, its key and its value, with a download of either.

import { element } from "../dom.js";
import { NOTHING, bytes, number, timeInUtc } from "../format.js";
import { field } from "../forms.js";
import { contentBlock, contentInLine, kindOf, timeOf } from "../record_text.js";
import { table } from "../table.js";

const FORMS = [
  ["auto", "JSON, text or bytes"],
  ["text", "Text"],
  ["hex", "Bytes in hex"],
];

export async function show(view) {
  const { name, partition, offset } = view.params;
  const path = `/topics/${encodeURIComponent(name)}`;
  const address = `${path}/records/${encodeURIComponent(partition)}/${encodeURIComponent(offset)}`;
  const state = { as: view.query.get("as") ?? "auto", all: view.query.get("all") === "true" };
  const place = element("div");
  const fill = (record) => place.replaceChildren(...parts(view, record, address, state, load));
  const load = async () => {
    view.remember({ as: state.as === "auto" ? null : state.as, all: state.all || null });
    try {
      fill(await view.get(address, { as: state.as, all: state.all }));
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  const record = await view.get(address, { as: state.as, all: state.all });
  view.show(`Record at offset ${record.offset}`, bar(path, record, state, load), place);
  fill(record);
}

function bar(path, record, state, load) {
  const back = element("a", { class: "button quiet", href: `${path}/records?partition=${record.partition}` }, "All records");
  const form = field({ label: "Show as", name: "as", type: "select", value: state.as, options: FORMS });
  form.querySelector("select").addEventListener("change", (event) => {
    state.as = event.target.value;
    load();
  });
  return element("div", { class: "bar" }, form, back);
}

function parts(view, record, address, state, load) {
  return [
    facts(view, record),
    ...["key", "value"].map((part) => content(view, record, part, address, state, load)),
    headers(record),
  ];
}

function facts(view, record) {
  const rows = [
    ["Topic", view.params.name],
    ["Partition", String(record.partition)],
    ["Offset", record.offset],
    ["Timestamp", timeOf(record.timestamp)],
    ["In UTC", record.timestamp === "-1" ? NOTHING : (timeInUtc(record.timestamp) ?? NOTHING)],
    ["Timestamp type", record.timestamp_type],
    ["Leader epoch", String(record.leader_epoch)],
    ["Batch", `${record.batch_first} to ${record.batch_last}, ${bytes(record.batch_bytes)}`],
    ["Compression", record.compression],
    ["Producer id", record.producer_id === null ? "none" : `${record.producer_id}${record.is_transactional ? ", transactional" : ""}`],
  ];
  const fact = ([title, text]) => element("div", {}, element("dt", {}, title), element("dd", { class: "small" }, text));
  return element("dl", { class: "facts" }, rows.map(fact));
}

function content(view, record, part, address, state, load) {
  const shown = record[part];
  const title = part === "key" ? "Key" : "Value";
  const more = shown.is_cut && !state.all;
  const showAll = () => {
    state.all = true;
    return load();
  };
  return element(
    "section",
    { class: "panel" },
    element("h2", {}, title),
    element("p", { class: "hint" }, kindOf(shown)),
    contentBlock(shown, title),
    element(
      "div",
      { class: "bar buttons" },
      more ? element("button", { type: "button", class: "quiet", onclick: showAll }, `Show all up to ${bytes(record.most_characters)}`) : null,
      shown.is_cut && state.all ? element("p", { class: "hint" }, "The rest is in the download.") : null,
      shown.kind === "null" ? null : downloadOf(address, part, title),
    ),
  );
}

function downloadOf(address, part, title) {
  // A link for the browser itself: the router must not take it for a page.
  const attributes = { class: "button quiet", href: `/api${address}/${part}`, download: true, onclick: (event) => event.stopPropagation() };
  return element("a", attributes, `Download the ${title.toLowerCase()}`);
}

function headers(record) {
  const rows = record.headers;
  const beyond = record.header_count - rows.length;
  return element(
    "section",
    { class: "panel" },
    table({
      caption: "Headers",
      rows,
      empty: "This record has no headers.",
      columns: [
        { title: "Name", head: true, long: true, cell: (row) => contentInLine(row.name) },
        { title: "Value", long: true, cell: (row) => contentInLine(row.value) },
        { title: "Size", number: true, cell: (row) => bytes(row.value.size_bytes) },
      ],
    }),
    beyond > 0 ? element("p", { class: "hint" }, `${number(beyond)} more are not shown.`) : null,
  );
}
