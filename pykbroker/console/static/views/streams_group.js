// A streams group: its topology, its members and their tasks, its internal topics, its offsets, and its lag over time.

import { element } from "../dom.js";
import { NOTHING, number, plural } from "../format.js";
import { redraw } from "../redraw.js";
import { table } from "../table.js";
import { actions } from "./group.js";
import { asked, epoch, groupPlaces, keepFilled, memberTable, named, notShown, offsetTable, pages, panel } from "./group_parts.js";

export async function show(view) {
  const state = { ...asked(view), topology_page: 1 };
  const group = await view.get("/group/streams", state);
  const places = { ...groupPlaces(), warning: element("div"), topology: panel(), topics: panel(), offsets: panel() };
  view.show(
    `Streams group ${state.id}`,
    ...[places.facts, places.warning, places.actions, places.lag.node],
    ...[places.members, places.topology, places.topics, places.offsets],
  );
  keepFilled(view, "/group/streams", state, places, group, {
    more: (group) => [
      ["Epoch", epoch(group)],
      ["Topology epoch", number(group.topology_epoch)],
    ],
    actions,
    draw: (group, load) => {
      redraw(places.warning, warning(group) ?? "");
      redraw(places.members, members(group), pages(group.members, "member", state, "members_page", load));
      redraw(places.topology, topologyTable(group), pages(group.subtopologies, "subtopology", state, "topology_page", load, "subtopologies"));
      redraw(places.topics, topicTable(group), moreTopics(group) ?? "");
      redraw(places.offsets, offsetTable(group, state, load), notShown(group), pages(group.offsets, "partition", state, "page", load));
    },
  });
}

function warning(group) {
  if (group.state !== "NotReady") return null;
  const why = group.missing.length
    ? `these topics are missing: ${group.missing.join(", ")}`
    : "its topics do not fit its topology, or its coordinator has not looked at them yet";
  return element("p", { class: "warning" }, `No member has tasks: ${why}.`);
}

function members(group) {
  const tasks = (title, kind, at) => ({ title, long: true, cell: (row) => named(row[kind], row.counts[at], NOTHING) });
  return memberTable(group, [
    { title: "Epoch", number: true, cell: (row) => number(row.epoch) },
    tasks("Active tasks", "active", 0),
    tasks("Standby", "standby", 1),
    tasks("Warm-up", "warmup", 2),
    { title: "Process", long: true, cell: (row) => element("span", { class: "mono" }, row.process_id) },
  ]);
}

function topologyTable(group) {
  const topics = (title, of) => ({ title, long: true, cell: (row) => of(row).join(", ") || NOTHING });
  return table({
    caption: "Topology",
    rows: group.subtopologies.rows,
    empty: "No member has brought a topology.",
    columns: [
      { title: "Subtopology", head: true, cell: (row) => row.id },
      topics("Reads", (row) => row.sources),
      topics("Repartition topics", (row) => row.repartition),
      topics("Changelogs", (row) => row.changelogs),
    ],
  });
}

function topicTable(group) {
  return table({
    caption: "Internal topics",
    rows: group.internal_topics,
    empty: "The topology has no internal topics.",
    columns: [
      {
        title: "Topic",
        head: true,
        long: true,
        cell: (row) => (row.error ? row.name : element("a", { href: `/topics/${encodeURIComponent(row.name)}` }, row.name)),
      },
      { title: "Partitions", number: true, cell: (row) => number(row.partitions) },
      { title: "Error", cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : "") },
    ],
  });
}

function moreTopics(group) {
  const more = group.internal_topic_count - group.internal_topics.length;
  return more > 0 ? element("p", { class: "hint" }, `and ${plural(more, "topic")} more`) : null;
}
