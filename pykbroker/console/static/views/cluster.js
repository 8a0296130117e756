// The cluster: brokers, the quorum of the metadata, partitions that are not well, log directories, features.

import { element } from "../dom.js";
import { NOTHING, bytes, number, plural, time } from "../format.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

const PERIOD_MS = 10_000;

export async function show(view) {
  const state = { page: 1 };
  const [cluster, troubled] = await Promise.all([view.get("/cluster"), view.get("/cluster/partitions", state)]);
  const panel = () => element("section", { class: "panel" });
  const places = { brokers: panel(), quorum: panel(), partitions: panel(), logDirs: panel(), features: panel() };
  view.show("Cluster", ...Object.values(places));
  fill(places, cluster);
  fillTroubled(view, state, places.partitions, troubled);
  view.pause(PERIOD_MS).then(() =>
    view.every(PERIOD_MS, async () => {
      const [now, trouble] = await Promise.all([view.get("/cluster"), view.get("/cluster/partitions", state)]);
      fill(places, now);
      fillTroubled(view, state, places.partitions, trouble);
    }),
  );
}

function missing(error) {
  if (!error) return "";
  const isDenied = error.endsWith("_AUTHORIZATION_FAILED");
  return element("p", { class: "warning" }, isDenied ? `You may not see this (${error}).` : `This cannot be told at the moment: ${error}.`);
}

function fill(places, cluster) {
  redraw(places.brokers, missing(cluster.errors.brokers), brokerTable(cluster));
  redraw(places.quorum, ...quorumOf(cluster));
  redraw(places.logDirs, ...logDirsOf(cluster));
  redraw(places.features, missing(cluster.errors.features), featureTable(cluster.features));
}

function brokerTable(cluster) {
  const stateOf = (row) => {
    if (row.is_fenced === null) return NOTHING;
    return row.is_fenced ? element("span", { class: "bad" }, "fenced") : element("span", { class: "good" }, "active");
  };
  return table({
    caption: "Brokers",
    rows: cluster.brokers,
    columns: [
      { title: "Broker", head: true, cell: (row) => element("a", { href: `/configs?broker=${row.id}` }, String(row.id)) },
      { title: "Address", cell: (row) => `${row.host}:${row.port}` },
      { title: "Rack", cell: (row) => row.rack ?? NOTHING },
      { title: "State", cell: stateOf },
      { title: "Leads partitions", number: true, cell: (row) => row.leaders },
    ],
  });
}

function quorumOf(cluster) {
  if (!cluster.quorum) return [element("h2", {}, "Quorum"), missing(cluster.errors.quorum)];
  const { quorum } = cluster;
  const nodes = table({
    caption: "Quorum",
    rows: quorum.nodes,
    columns: [
      { title: "Node", head: true, cell: (row) => String(row.id) },
      { title: "Role", cell: (row) => row.role },
      { title: "End offset", number: true, cell: (row) => number(row.end_offset) },
      { title: "Lag", number: true, cell: (row) => number(row.lag) },
      { title: "Caught up last", cell: (row) => (row.caught_up_ms === null ? NOTHING : time(row.caught_up_ms)) },
    ],
  });
  const leader = quorum.leader < 0 ? "Nobody leads" : `Node ${quorum.leader} leads`;
  return [nodes, element("p", { class: "hint" }, `${leader}, in epoch ${quorum.epoch}. The high watermark is ${number(quorum.high_watermark)}.`)];
}

function fillTroubled(view, state, place, troubled) {
  state.page = troubled.partitions.page;
  const counts = `${number(troubled.without_leader)} without a leader, ${number(troubled.under_replicated)} under-replicated, ${number(troubled.under_min_isr)} with fewer in-sync replicas than min.insync.replicas.`;
  const wrong = (row) => {
    if (row.leader === null) return element("span", { class: "bad" }, "no leader");
    return row.is_under_min_isr ? element("span", { class: "bad" }, "under min ISR") : element("span", { class: "warning" }, "under-replicated");
  };
  redraw(
    place,
    table({
      caption: "Partitions that need attention",
      rows: troubled.partitions.rows,
      empty: "All partitions have their leaders and replicas.",
      columns: [
        { title: "Topic", head: true, long: true, cell: (row) => element("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
        { title: "Partition", number: true, cell: (row) => String(row.partition) },
        { title: "What is wrong", cell: wrong },
        { title: "Leader", number: true, cell: (row) => (row.leader === null ? "none" : String(row.leader)) },
        { title: "Replicas", cell: (row) => row.replicas.join(", ") },
        { title: "In sync", cell: (row) => row.isr.join(", ") || "none" },
        { title: "Offline", cell: (row) => row.offline.join(", ") || NOTHING },
        { title: "Min ISR", number: true, cell: (row) => number(row.min_isr) },
      ],
    }),
    element("p", { class: "hint" }, counts),
    troubled.not_told ? element("p", { class: "hint" }, `min.insync.replicas is not known of ${plural(troubled.not_told, "topic")}.`) : "",
    pager(troubled.partitions, troubled.partitions.total === 1 ? "partition" : "partitions", async (page) => {
      state.page = page;
      try {
        fillTroubled(view, state, place, await view.get("/cluster/partitions", state));
      } catch (error) {
        view.fail(error);
      }
    }),
  );
}

function logDirsOf(cluster) {
  const errors = Object.entries(cluster.log_dir_errors);
  const silent = errors.length ? element("p", { class: "warning" }, `Not told: ${errors.map(([id, error]) => `broker ${id} (${error})`).join(", ")}.`) : "";
  const free = (row) => {
    const isLow = row.usable_bytes !== null && row.total_bytes && row.usable_bytes < row.total_bytes / 10;
    return element("span", { class: isLow ? "warning" : null }, bytes(row.usable_bytes));
  };
  const rows = table({
    caption: "Log directories",
    rows: cluster.log_dirs,
    empty: "No broker tells of its directories.",
    columns: [
      { title: "Broker", head: true, cell: (row) => String(row.broker) },
      { title: "Directory", long: true, cell: (row) => element("span", { class: "mono" }, row.path) },
      { title: "Replicas", number: true, cell: (row) => row.replicas },
      { title: "Size", number: true, cell: (row) => bytes(row.size_bytes) },
      { title: "Free", number: true, cell: free },
      { title: "Volume", number: true, cell: (row) => bytes(row.total_bytes) },
      { title: "Error", cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : "") },
    ],
  });
  return [silent, rows];
}

function featureTable(features) {
  return table({
    caption: "Features",
    rows: features,
    empty: "The broker names no features.",
    columns: [
      { title: "Name", head: true, long: true, cell: (row) => row.name },
      { title: "In use", number: true, cell: (row) => row.finalized },
      { title: "Supported", number: true, cell: (row) => `${row.least} to ${row.most}` },
    ],
  });
}
