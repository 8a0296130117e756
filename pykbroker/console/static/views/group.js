// A group: its members and what they read, its offsets, its lag over time; other offsets for it, and its deletion.

import { element } from "../dom.js";
import { NOTHING, number, plural } from "../format.js";
import { destroyDialog, field, formDialog } from "../forms.js";
import { Plot } from "../plot.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";
import { groupAddress } from "./groups.js";

const PERIOD_MS = 5_000;
const MOST_SHOWN = 200;

export async function show(view) {
  const id = view.query.get("id") ?? "";
  const state = { id, page: Number(view.query.get("page") ?? 1) || 1, members_page: 1, sort: view.query.get("sort") ?? "name" };
  const group = await view.get("/group", state);
  if (["share", "streams"].includes(group.type)) {
    view.router.go(groupAddress(id, group.type), { replace: true });
    return;
  }
  const places = {
    facts: element("dl", { class: "facts" }),
    members: element("section", { class: "panel" }),
    offsets: element("section", { class: "panel" }),
    actions: element("div"),
    lag: lagPlot(),
  };
  view.show(`Group ${id}`, places.facts, places.actions, places.lag.node, places.members, places.offsets);
  fill(view, state, places, group);
  view.pause(PERIOD_MS).then(() => view.every(PERIOD_MS, async () => fill(view, state, places, await view.get("/group", state))));
}

export function lagPlot() {
  return new Plot({ label: "Lag of all partitions", format: (value) => number(Math.round(value)) });
}

export function facts(pairs) {
  return pairs.map(([title, text]) => element("div", {}, element("dt", {}, title), element("dd", {}, text)));
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
      ["Assignor", group.assignor || NOTHING],
    ]),
  );
  const load = async () => {
    view.remember({ page: state.page === 1 ? null : state.page, sort: state.sort === "name" ? null : state.sort });
    try {
      fill(view, state, places, await view.get("/group", state));
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
    places.offsets,
    offsetTable(group, state, load),
    notShown(group),
    pages(group.offsets, "partition", state, "page", load),
  );
}

// The assignment may be of an epoch before.
export function epoch(group) {
  return group.epoch === group.assignment_epoch ? number(group.epoch) : `${number(group.epoch)}, assigned ${number(group.assignment_epoch)}`;
}

export function notShown(group) {
  return group.not_shown ? element("p", { class: "hint" }, `${plural(group.not_shown, "partition")} more: there are too many to reckon the lag of all.`) : "";
}

export function pages(page, noun, state, name, load, many = `${noun}s`) {
  return pager(page, page.total === 1 ? noun : many, (wanted) => {
    state[name] = wanted;
    load();
  });
}

// As many names as the server has sent, and how many there are beside. count: of all.
export function named(names, count, empty = "nothing") {
  const more = count - names.length;
  return count ? `${names.join(", ")}${more ? ` and ${number(more)} more` : ""}` : empty;
}

function memberTable(group) {
  return table({
    caption: "Members",
    rows: group.members.rows,
    empty: "This group has no members at the moment.",
    columns: [
      { title: "Client", head: true, long: true, cell: (row) => row.client_id || NOTHING },
      { title: "Host", cell: (row) => row.host },
      { title: "Instance", long: true, cell: (row) => row.instance_id ?? NOTHING },
      { title: "Reads", long: true, cell: (row) => named(row.assigned, row.count) },
      { title: "Member id", long: true, cell: (row) => element("span", { class: "mono" }, row.member_id) },
    ],
  });
}

export function offsetTable(group, state, load) {
  return table({
    caption: "Offsets",
    rows: group.offsets.rows,
    empty: "This group has committed no offsets.",
    sorted: { by: state.sort, descending: state.sort === "lag" },
    onSort: (sort) => {
      Object.assign(state, { sort, page: 1 });
      load();
    },
    columns: [
      { title: "Topic", head: true, long: true, sort: "name", cell: (row) => element("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
      { title: "Partition", number: true, cell: (row) => String(row.partition) },
      { title: "Committed", number: true, cell: (row) => number(row.committed) },
      { title: "End offset", number: true, cell: (row) => number(row.end) },
      { title: "Lag", number: true, sort: "lag", cell: (row) => number(row.lag) },
      { title: "Read by", long: true, cell: (row) => row.owner ?? NOTHING },
      { title: "Error", cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : "") },
    ],
  });
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

export function deleteDialog(view, id, what = "its committed offsets") {
  destroyDialog({
    title: "Delete",
    description: `Group ${id} and ${what} are deleted.`,
    name: id,
    action: "Delete the group",
    submit: async (confirm) => {
      await view.change("DELETE", "/group", { id, confirm });
      view.say(`Group ${id} is deleted.`);
      view.go("/groups");
    },
  });
}
