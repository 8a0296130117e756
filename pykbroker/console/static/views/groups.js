// The groups of all brokers: filtered by the server, a page at a time.

import { element } from "../dom.js";
import { NOTHING, number } from "../format.js";
import { field, filterField } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

export async function show(view) {
  const state = {
    filter: view.query.get("filter") ?? "",
    state: view.query.get("state") ?? "",
    type: view.query.get("type") ?? "",
    descending: view.query.get("descending") === "true",
    page: Number(view.query.get("page") ?? 1) || 1,
  };
  const list = element("section", { class: "panel" });
  const found = await view.get("/groups", state);
  const loading = { number: 0 };
  const changed = () => load(view, state, list, loading);
  view.show("Groups", bar(state, found, changed), list);
  fill(state, list, found, changed);
}

// Share groups and streams groups have pages of their own.
export function groupAddress(id, type = "") {
  const page = { share: "share", streams: "streams" }[type.toLowerCase()] ?? "group";
  return `/groups/${page}?${new URLSearchParams({ id })}`;
}

function bar(state, found, changed) {
  const filter = filterField(state, changed);
  const choice = (label, name, values) => {
    const known = [...new Set([...values, state[name]])].filter(Boolean);
    const options = [["", "all"], ...known.map((each) => [each, each])];
    const node = field({ label, name, type: "select", value: state[name], options });
    node.querySelector("select").addEventListener("change", (event) => {
      Object.assign(state, { [name]: event.target.value, page: 1 });
      changed();
    });
    return node;
  };
  return element("div", { class: "bar", role: "search" }, filter, choice("State", "state", found.states), choice("Type", "type", found.types));
}

async function load(view, state, list, loading) {
  loading.number += 1;
  const { number: mine } = loading;
  view.remember({ ...state, page: state.page === 1 ? null : state.page });
  try {
    const found = await view.get("/groups", state);
    if (mine !== loading.number || view.signal.aborted) return; // another answer has overtaken this one
    fill(state, list, found, () => load(view, state, list, loading));
    view.works();
  } catch (error) {
    view.fail(error);
  }
}

function fill(state, list, found, changed) {
  const { groups, errors } = found;
  state.page = groups.page;
  const missing = Object.entries(errors).map(([id, error]) => `broker ${id} (${error})`);
  redraw(
    list,
    missing.length ? element("p", { class: "warning" }, `Groups are missing: of ${missing.join(", ")}.`) : "",
    table({
      caption: "Groups",
      rows: groups.rows,
      sorted: { by: "name", descending: state.descending },
      onSort: (_, descending) => {
        Object.assign(state, { descending, page: 1 });
        changed();
      },
      empty: state.filter || state.state || state.type ? "No group is like this." : "There are no groups that you may see.",
      columns: [
        { title: "Name", head: true, long: true, sort: "name", cell: (row) => element("a", { href: groupAddress(row.group_id, row.type) }, row.group_id || "(empty name)") },
        { title: "State", cell: (row) => row.state || NOTHING },
        { title: "Type", cell: (row) => row.type || NOTHING },
        { title: "Coordinator", number: true, cell: (row) => String(row.coordinator) },
        { title: "Members", number: true, cell: (row) => number(row.members) },
        { title: "Total lag", number: true, cell: (row) => number(row.lag) },
      ],
    }),
    pager(groups, groups.total === 1 ? "group" : "groups", (page) => {
      state.page = page;
      changed();
    }),
  );
}
