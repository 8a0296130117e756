// The cluster at a glance: its brokers, what is wrong, and the throughput, live.

import { element } from "../dom.js";
import { NOTHING, bytes, number, rate } from "../format.js";
import { Plot } from "../plot.js";
import { redraw } from "../redraw.js";
import { table } from "../table.js";

const FACTS = [
  ["Topics", (of) => number(of.topics)],
  ["Partitions", (of) => number(of.partitions)],
  ["Under-replicated", (of) => number(of.under_replicated), (of) => (of.under_replicated ? "warning" : "good")],
  ["Without a leader", (of) => number(of.offline), (of) => (of.offline ? "bad" : "good")],
  ["Groups", (of) => number(of.groups)],
  ["Brokers", (of) => number(of.brokers.length)],
  ["Controller", (of) => (of.controller === null ? NOTHING : `node ${of.controller}`)],
  ["Cluster id", (of) => of.cluster_id ?? NOTHING, () => "small mono"],
];

export async function show(view) {
  const facts = element("dl", { class: "facts" });
  const brokers = element("section", { class: "panel" });
  const records = new Plot({ label: "Records appended per second", format: rate });
  const size = new Plot({ label: "Growth of the logs per second", isBytes: true, format: (value) => `${bytes(value)}/s` });
  const note = element("p", { class: "hint" });
  const overview = await view.get("/overview");
  view.show("Overview", facts, element("div", { class: "panels" }, records.node, size.node), note, brokers);
  fill(facts, brokers, overview);
  view.every(2_000, throughput(view, records, size, note));
  view.pause(10_000).then(() => view.every(10_000, async () => fill(facts, brokers, await view.get("/overview"))));
}

function fill(facts, brokers, overview) {
  redraw(
    facts,
    ...FACTS.map(([title, text, kind]) =>
      element("div", {}, element("dt", {}, title), element("dd", { class: kind?.(overview) ?? null }, text(overview))),
    ),
  );
  redraw(
    brokers,
    table({
      caption: "Brokers",
      rows: overview.brokers,
      columns: [
        { title: "Broker", head: true, cell: (row) => String(row.id) },
        { title: "Address", cell: (row) => `${row.host}:${row.port}` },
        { title: "Rack", cell: (row) => row.rack ?? NOTHING },
        { title: "Leads partitions", number: true, cell: (row) => row.leaders },
        { title: "Answers", cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : "yes") },
      ],
    }),
  );
}

// Rates are differences of two answers about the same partitions.
function throughput(view, records, size, note) {
  let before = null;
  return async () => {
    const now = await view.get("/throughput");
    const seconds = before && now.of === before.of ? (now.time_ms - before.time_ms) / 1000 : 0;
    if (seconds > 0) {
      records.add(now.time_ms, Math.max(0, now.end_offsets - before.end_offsets) / seconds);
      const grown = now.size_bytes === null || before.size_bytes === null ? null : now.size_bytes - before.size_bytes;
      size.add(now.time_ms, grown === null ? null : Math.max(0, grown) / seconds);
    }
    before = now;
    note.textContent = now.not_shown ? `The plots leave out ${number(now.not_shown)} partitions: there are too many.` : "";
  };
}
