// A share group: its members and what they read together, where each partition begins, its lag over time, and how often
// records that are not settled were delivered; its deletion.

import { element } from "../dom.js";
import { NOTHING, number, plural } from "../format.js";
import { redraw } from "../redraw.js";
import { table } from "../table.js";
import { deleteDialog, epoch, facts, lagPlot, named, notShown, pages } from "./group.js";

const PERIOD_MS = 5_000;

export async function show(view) {
  const id = view.query.get("id") ?? "";
  const state = { id, page: Number(view.query.get("page") ?? 1) || 1, members_page: 1, sort: view.query.get("sort") ?? "name" };
  const group = await view.get("/group/share", state);
  const places = {
    facts: element("dl", { class: "facts" }),
    members: element("section", { class: "panel" }),
    partitions: element("section", { class: "panel" }),
    deliveries: element("section", { class: "panel", hidden: true }),
    actions: element("div"),
    lag: lagPlot(),
  };
  view.show(`Share group ${id}`, places.facts, places.actions, places.lag.node, places.members, places.partitions, places.deliveries);
  fill(view, state, places, group);
  view.pause(PERIOD_MS).then(() => view.every(PERIOD_MS, async () => fill(view, state, places, await view.get("/group/share", state))));
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
      ["Assignor", group.assignor || NOTHING],
    ]),
  );
  const load = async () => {
    view.remember({ page: state.page === 1 ? null : state.page, sort: state.sort === "name" ? null : state.sort });
    try {
      fill(view, state, places, await view.get("/group/share", state));
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  if (places.hasMembers !== group.members.total > 0) {
    places.hasMembers = group.members.total > 0;
    redraw(places.actions, actions(view, group, state.id) ?? "");
  }
  redraw(places.members, memberTable(group), pages(group.members, "member", state, "members_page", load));
  redraw(
    places.partitions,
    partitionTable(view, group, state, places, load),
    notShown(group),
    pages(group.partitions, "partition", state, "page", load),
  );
}

function actions(view, group, id) {
  if (!view.mayChange) return null;
  if (group.members.total) return element("p", { class: "hint" }, "The group can be deleted when its members have left.");
  const ask = () => deleteDialog(view, id, "what it has read");
  return element("div", { class: "bar buttons" }, element("button", { type: "button", class: "danger", onclick: ask }, "Delete"));
}

function memberTable(group) {
  return table({
    caption: "Members",
    rows: group.members.rows,
    empty: "This group has no members at the moment.",
    columns: [
      { title: "Client", head: true, long: true, cell: (row) => row.client_id || NOTHING },
      { title: "Host", cell: (row) => row.host },
      { title: "Epoch", number: true, cell: (row) => number(row.epoch) },
      { title: "Reads", long: true, cell: (row) => named(row.assigned, row.count) },
      { title: "Member id", long: true, cell: (row) => element("span", { class: "mono" }, row.member_id) },
    ],
  });
}

function partitionTable(view, group, state, places, load) {
  const look = (row) => () => showDeliveries(view, state.id, row, places.deliveries);
  return table({
    caption: "Partitions",
    rows: group.partitions.rows,
    empty: "This group reads no partitions yet.",
    sorted: { by: state.sort, descending: state.sort === "lag" },
    onSort: (sort) => {
      Object.assign(state, { sort, page: 1 });
      load();
    },
    columns: [
      { title: "Topic", head: true, long: true, sort: "name", cell: (row) => element("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
      { title: "Partition", number: true, cell: (row) => String(row.partition) },
      { title: "Start offset", number: true, cell: (row) => number(row.start) },
      { title: "End offset", number: true, cell: (row) => number(row.end) },
      { title: "Lag", number: true, sort: "lag", cell: (row) => number(row.lag) },
      { title: "Read by", long: true, cell: (row) => readers(row) },
      { title: "Deliveries", cell: (row) => element("button", { type: "button", class: "quiet", "aria-label": `Deliveries of ${row.topic}-${row.partition}`, onclick: look(row) }, "Show") },
      { title: "Error", cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : "") },
    ],
  });
}

// Several members may have one client id.
function readers(row) {
  if (!row.reader_count) return NOTHING;
  const names = row.readers.map((each) => each || NOTHING).join(", ");
  return row.reader_count > row.readers.length ? `${names} (${plural(row.reader_count, "member")})` : names;
}

// Records behind the start offset, as the share coordinator keeps them.
async function showDeliveries(view, id, row, place) {
  const { topic, partition } = row;
  try {
    const { runs, run_count: count } = await view.get("/group/share/deliveries", { id, topic, partition });
    if (view.signal.aborted) return;
    place.hidden = false;
    redraw(
      place,
      table({
        caption: `Deliveries of ${topic}-${partition}`,
        rows: runs,
        empty: "All records before the start offset are settled, and nothing was said of those behind it.",
        columns: [
          { title: "From", head: true, cell: (each) => number(each.first) },
          { title: "To", number: true, cell: (each) => number(each.last) },
          { title: "State", cell: (each) => each.state },
          { title: "Delivered", number: true, cell: (each) => plural(each.deliveries, "time") },
        ],
      }),
      count > runs.length ? element("p", { class: "hint" }, `and ${number(count - runs.length)} more`) : "",
    );
    view.works();
  } catch (error) {
    view.fail(error);
  }
}
