// What the pages of all groups have in common: they are drawn again from time to time, and have facts, members,
// partitions, lag over time, and a deletion.

import { element } from "../dom.js";
import { NOTHING, number, plural } from "../format.js";
import { destroyDialog } from "../forms.js";
import { Plot } from "../plot.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

const PERIOD_MS = 5_000;

// The group that the address names, and which of its rows are asked for.
export function asked(view) {
  const id = view.query.get("id") ?? "";
  return { id, page: Number(view.query.get("page") ?? 1) || 1, members_page: 1, sort: view.query.get("sort") ?? "name" };
}

// The places that each page of a group has.
export function groupPlaces() {
  return { facts: element("dl", { class: "facts" }), members: panel(), actions: element("div"), lag: lagPlot() };
}

export function panel(attributes = {}) {
  return element("section", { class: "panel", ...attributes });
}

// Fill the places with a group, and again with each that comes later. path: where it is asked for; more: facts behind
// those of every group; actions: what may be done; draw: fills all other places, given what asks for the group at once.
export function keepFilled(view, path, state, places, group, { more, actions, draw }) {
  const fill = (group) => {
    if (view.signal.aborted) return;
    places.lag.add(Date.now(), group.lag === null ? null : Number(group.lag));
    redraw(places.facts, ...facts(group, more(group)));
    if (places.hasMembers !== group.members.total > 0) {
      places.hasMembers = group.members.total > 0;
      redraw(places.actions, actions(view, group, state.id) ?? "");
    }
    draw(group, load);
  };
  const load = async () => {
    view.remember({ page: state.page === 1 ? null : state.page, sort: state.sort === "name" ? null : state.sort });
    try {
      fill(await view.get(path, state));
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  fill(group);
  view.pause(PERIOD_MS).then(() => view.every(PERIOD_MS, async () => fill(await view.get(path, state))));
}

function lagPlot() {
  return new Plot({ label: "Lag of all partitions", format: (value) => number(Math.round(value)) });
}

function facts(group, more) {
  const pairs = [
    ["State", group.state],
    ["Type", group.type],
    ["Members", number(group.members.total)],
    ["Total lag", number(group.lag)],
    ["Coordinator", `broker ${group.coordinator}`],
    ...more,
  ];
  return pairs.map(([title, text]) => element("div", {}, element("dt", {}, title), element("dd", {}, text)));
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

// columns: between the host and the member id.
export function memberTable(group, columns) {
  return table({
    caption: "Members",
    rows: group.members.rows,
    empty: "This group has no members at the moment.",
    columns: [
      { title: "Client", head: true, long: true, cell: (row) => row.client_id || NOTHING },
      { title: "Host", cell: (row) => row.host },
      ...columns,
      { title: "Member id", long: true, cell: (row) => element("span", { class: "mono" }, row.member_id) },
    ],
  });
}

// Partitions, by name or by lag. at: the column of the offset where the group is; columns: between the lag and the error.
export function partitionTable(state, load, { caption, rows, empty, at, columns }) {
  return table({
    caption,
    rows,
    empty,
    sorted: { by: state.sort, descending: state.sort === "lag" },
    onSort: (sort) => {
      Object.assign(state, { sort, page: 1 });
      load();
    },
    columns: [
      { title: "Topic", head: true, long: true, sort: "name", cell: (row) => element("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
      { title: "Partition", number: true, cell: (row) => String(row.partition) },
      at,
      { title: "End offset", number: true, cell: (row) => number(row.end) },
      { title: "Lag", number: true, sort: "lag", cell: (row) => number(row.lag) },
      ...columns,
      { title: "Error", cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : "") },
    ],
  });
}

export function offsetTable(group, state, load) {
  return partitionTable(state, load, {
    caption: "Offsets",
    rows: group.offsets.rows,
    empty: "This group has committed no offsets.",
    at: { title: "Committed", number: true, cell: (row) => number(row.committed) },
    columns: [{ title: "Read by", long: true, cell: (row) => row.owner ?? NOTHING }],
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
