// A group: its members and what they read, its offsets, its lag over time; other offsets for it, and its deletion.

import { element } from "../dom.js";
import { NOTHING, number, plural } from "../format.js";
import { field, formDialog } from "../forms.js";
import { redraw } from "../redraw.js";
import { table } from "../table.js";
import { asked, deleteDialog, groupPlaces, keepFilled, memberTable, named, notShown, offsetTable, pages, panel } from "./group_parts.js";
import { groupAddress } from "./groups.js";

const MOST_SHOWN = 200;

export async function show(view) {
  const state = asked(view);
  const group = await view.get("/group", state);
  if (["share", "streams"].includes(group.type)) {
    view.router.go(groupAddress(state.id, group.type), { replace: true });
    return;
  }
  const places = { ...groupPlaces(), offsets: panel() };
  view.show(`Group ${state.id}`, places.facts, places.actions, places.lag.node, places.members, places.offsets);
  keepFilled(view, "/group", state, places, group, {
    more: (group) => [["Assignor", group.assignor || NOTHING]],
    actions,
    draw: (group, load) => {
      redraw(places.members, members(group), pages(group.members, "member", state, "members_page", load));
      redraw(
        places.offsets,
        offsetTable(group, state, load),
        notShown(group),
        pages(group.offsets, "partition", state, "page", load),
      );
    },
  });
}

function members(group) {
  return memberTable(group, [
    { title: "Instance", long: true, cell: (row) => row.instance_id ?? NOTHING },
    { title: "Reads", long: true, cell: (row) => named(row.assigned, row.count) },
  ]);
}

// ---- what may be done

export function actions(view, group, id) {
  if (!view.mayChange) return null;
  if (group.members.total) {
    return element("p", { class: "hint" }, "Offsets can be reset, and the group deleted, when its members have left.");
  }
  return element(
    "div",
    { class: "bar buttons" },
    element("button", { type: "button", class: "quiet", onclick: () => resetDialog(view, id) }, "Reset offsets"),
    element("button", { type: "button", class: "danger", onclick: () => deleteDialog(view, id) }, "Delete"),
  );
}

function resetDialog(view, id) {
  const options = [
    ["earliest", "the first records"],
    ["latest", "the end"],
    ["offset", "an offset"],
    ["time", "a time"],
    ["shift", "forward or back by"],
  ];
  formDialog({
    title: "Reset offsets",
    description: "Nothing is changed before you have seen the plan.",
    action: "Show the plan",
    fields: [
      field({ label: "Topic", name: "topic", autocomplete: "off", hint: "Empty: all partitions with a committed offset." }),
      field({ label: "To", name: "to", type: "select", options, value: "earliest" }),
      field({ label: "Offset, or number of records", name: "value", type: "number", step: 1, hint: "A negative number goes back." }),
      field({ label: "Time", name: "time", type: "datetime-local", step: 1, hint: "Yours: the first record from then on." }),
    ],
    submit: async ({ topic, to, value, time }) => {
      const query = { id, topic, to };
      if (to === "time") query.value = new Date(time).getTime();
      if (to === "offset" || to === "shift") query.value = value;
      if (to === "time" && Number.isNaN(query.value)) throw Object.assign(new Error("a time is missing"), { errorName: "INVALID_REQUEST" });
      planDialog(view, id, await view.get("/group/reset", query));
    },
  });
}

function planDialog(view, id, rows) {
  const possible = rows.filter((row) => row.new !== null);
  const offsets = Object.fromEntries(possible.map((row) => [`${row.topic}-${row.partition}`, String(row.new)]));
  const plan = table({
    caption: "Plan",
    rows: rows.slice(0, MOST_SHOWN),
    empty: "There is no partition to reset.",
    columns: [
      { title: "Partition", head: true, long: true, cell: (row) => `${row.topic}-${row.partition}` },
      { title: "Now", number: true, cell: (row) => number(row.now) },
      { title: "New", number: true, cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : number(row.new)) },
    ],
  });
  const more = rows.length > MOST_SHOWN ? element("p", { class: "hint" }, `and ${plural(rows.length - MOST_SHOWN, "partition")} more`) : null;
  formDialog({
    title: `Reset ${plural(possible.length, "partition")}`,
    description: `Group ${id} goes on at these offsets.`,
    action: "Reset",
    danger: true,
    fields: [plan, ...(more ? [more] : [])],
    submit: async () => {
      const { partitions } = await view.change("PUT", "/group/offsets", { id, offsets });
      view.say(`${plural(partitions, "partition")} of ${id} reset.`);
      view.again();
    },
  });
}
