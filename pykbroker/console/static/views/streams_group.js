// A streams group: its topology, its members and their tasks, its internal topics, its offsets, and its lag over time.

import { element } from "../dom.js";
import { NOTHING, number, plural } from "../format.js";
import { redraw } from "../redraw.js";
import { table } from "../table.js";
import { actions, epoch, facts, lagPlot, named, notShown, offsetTable, pages } from "./group.js";

const PERIOD_MS = 5_000;

export async function show(view) {
  const id = view.query.get("id") ?? "";
  const state = {
    id,
    page: Number(view.query.get("page") ?? 1) || 1,
    members_page: 1,
    topology_page: 1,
    sort: view.query.get("sort") ?? "name",
  };
  const group = await view.get("/group/streams", state);
  const places = {
    facts: element("dl", { class: "facts" }),
    warning: element("div"),
    members: element("section", { class: "panel" }),
    topology: element("section", { class: "panel" }),
    topics: element("section", { class: "panel" }),
    offsets: element("section", { class: "panel" }),
    actions: element("div"),
    lag: lagPlot(),
  };
  view.show(
    `Streams group ${id}`,
    ...[places.facts, places.warning, places.actions, places.lag.node],
    ...[places.members, places.topology, places.topics, places.offsets],
  );
  fill(view, state, places, group);
  view.pause(PERIOD_MS).then(() => view.every(PERIOD_MS, async () => fill(view, state, places, await view.get("/group/streams", state))));
}

function fill(view, state, places, group) {
  if (view.signal.aborted) return;
  places.lag.add(Date.now(), group.lag === null ? null : Number(group.lag));
  redraw(
    places.facts,
    ...facts([
      ["State", group.state],
      ["Type", group.type],
      ["Members", number(group.members.total)],
      ["Total lag", number(group.lag)],
      ["Coordinator", `broker ${group.coordinator}`],
      ["Epoch", epoch(group)],
      ["Topology epoch", number(group.topology_epoch)],
    ]),
  );
  const load = async () => {
    view.remember({ page: state.page === 1 ? null : state.page, sort: state.sort === "name" ? null : state.sort });
    try {
      fill(view, state, places, await view.get("/group/streams", state));
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  if (places.hasMembers !== group.members.total > 0) {
    places.hasMembers = group.members.total > 0;
    redraw(places.actions, actions(view, group, state.id) ?? "");
  }
  redraw(places.warning, warning(group) ?? "");
  redraw(places.members, memberTable(group), pages(group.members, "member", state, "members_page", load));
  redraw(places.topology, topologyTable(group), pages(group.subtopologies, "subtopology", state, "topology_page", load, "subtopologies"));
  redraw(places.topics, topicTable(group), moreTopics(group) ?? "");
  redraw(places.offsets, offsetTable(group, state, load), notShown(group), pages(group.offsets, "partition", state, "page", load));
}

function warning(group) {
  if (group.state !== "NotReady") return null;
  const why = group.missing.length
    ? `these topics are missing: ${group.missing.join(", ")}`
    : "its topics do not fit its topology, or its coordinator has not looked at them yet";
  return element("p", { class: "warning" }, `No member has tasks: ${why}.`);
}

function memberTable(group) {
  const tasks = (title, kind, at) => ({ title, long: true, cell: (row) => named(row[kind], row.counts[at], NOTHING) });
  return table({
    caption: "Members",
    rows: group.members.rows,
    empty: "This group has no members at the moment.",
    columns: [
      { title: "Client", head: true, long: true, cell: (row) => row.client_id || NOTHING },
      { title: "Host", cell: (row) => row.host },
      { title: "Epoch", number: true, cell: (row) => number(row.epoch) },
      tasks("Active tasks", "active", 0),
      tasks("Standby", "standby", 1),
      tasks("Warm-up", "warmup", 2),
      { title: "Process", long: true, cell: (row) => element("span", { class: "mono" }, row.process_id) },
      { title: "Member id", long: true, cell: (row) => element("span", { class: "mono" }, row.member_id) },
    ],
  });
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
