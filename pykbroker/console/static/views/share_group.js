// A share group: its members and what they read together, where each partition begins, its lag over time, and how often
// records that are not settled were delivered; its deletion.

import { element } from "../dom.js";
import { NOTHING, number, plural } from "../format.js";
import { redraw } from "../redraw.js";
import { table } from "../table.js";
import { asked, deleteDialog, epoch, groupPlaces, keepFilled, memberTable, named, notShown, pages, panel, partitionTable } from "./group_parts.js";

export async function show(view) {
  const state = asked(view);
  const group = await view.get("/group/share", state);
  const places = { ...groupPlaces(), partitions: panel(), deliveries: panel({ hidden: true }) };
  view.show(`Share group ${state.id}`, places.facts, places.actions, places.lag.node, places.members, places.partitions, places.deliveries);
  keepFilled(view, "/group/share", state, places, group, {
    more: (group) => [
      ["Epoch", epoch(group)],
      ["Assignor", group.assignor || NOTHING],
    ],
    actions,
    draw: (group, load) => {
      redraw(places.members, members(group), pages(group.members, "member", state, "members_page", load));
      redraw(
        places.partitions,
        partitions(view, group, state, places, load),
        notShown(group),
        pages(group.partitions, "partition", state, "page", load),
      );
    },
  });
}

function actions(view, group, id) {
  if (!view.mayChange) return null;
  if (group.members.total) return element("p", { class: "hint" }, "The group can be deleted when its members have left.");
  const ask = () => deleteDialog(view, id, "what it has read");
  return element("div", { class: "bar buttons" }, element("button", { type: "button", class: "danger", onclick: ask }, "Delete"));
}

function members(group) {
  return memberTable(group, [
    { title: "Epoch", number: true, cell: (row) => number(row.epoch) },
    { title: "Reads", long: true, cell: (row) => named(row.assigned, row.count) },
  ]);
}

function partitions(view, group, state, places, load) {
  const look = (row) => () => showDeliveries(view, state.id, row, places.deliveries);
  return partitionTable(state, load, {
    caption: "Partitions",
    rows: group.partitions.rows,
    empty: "This group reads no partitions yet.",
    at: { title: "Start offset", number: true, cell: (row) => number(row.start) },
    columns: [
      { title: "Read by", long: true, cell: (row) => readers(row) },
      { title: "Deliveries", cell: (row) => element("button", { type: "button", class: "quiet", "aria-label": `Deliveries of ${row.topic}-${row.partition}`, onclick: look(row) }, "Show") },
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
