// The topics: filtered and sorted by the server, a page at a time, and a form for a new one.

import { element } from "../dom.js";
import { number } from "../format.js";
import { field, filterField, formDialog } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

export async function show(view) {
  const state = {
    filter: view.query.get("filter") ?? "",
    sort: view.query.get("sort") ?? "name",
    descending: view.query.get("descending") === "true",
    internal: view.query.get("internal") === "true",
    page: Number(view.query.get("page") ?? 1) || 1,
  };
  const list = element("section", { class: "panel" });
  const found = await view.get("/topics", state);
  view.show("Topics", bar(view, state, () => load(view, state, list)), list);
  fill(view, state, list, found);
}

function bar(view, state, changed) {
  const filter = filterField(state, changed);
  const internal = field({ label: "Internal topics too", name: "internal", type: "checkbox", value: state.internal });
  internal.querySelector("input").addEventListener("change", (event) => {
    Object.assign(state, { internal: event.target.checked, page: 1 });
    changed();
  });
  const create = element("button", { type: "button", class: "end", onclick: () => createDialog(view) }, "Create topic");
  return element("div", { class: "bar", role: "search" }, filter, internal, view.mayChange ? create : null);
}

async function load(view, state, list) {
  view.remember({ ...state, sort: state.sort === "name" ? null : state.sort, page: state.page === 1 ? null : state.page });
  try {
    fill(view, state, list, await view.get("/topics", state));
    view.works();
  } catch (error) {
    view.fail(error);
  }
}

function fill(view, state, list, found) {
  state.page = found.page;
  const sort = (by, descending) => {
    Object.assign(state, { sort: by, descending, page: 1 });
    load(view, state, list);
  };
  redraw(
    list,
    table({
      caption: "Topics",
      rows: found.rows,
      sorted: { by: state.sort, descending: state.descending },
      onSort: sort,
      empty: state.filter ? "No topic's name has this in it." : "There are no topics yet.",
      columns: [
        { title: "Name", head: true, long: true, sort: "name", cell: (row) => nameOf(row) },
        { title: "Partitions", number: true, sort: "partitions", cell: (row) => row.partitions },
        { title: "Replicas", number: true, sort: "replicas", cell: (row) => row.replicas },
        { title: "Under-replicated", number: true, sort: "under_replicated", cell: (row) => wrong(row) },
      ],
    }),
    pager(found, found.total === 1 ? "topic" : "topics", (page) => {
      state.page = page;
      load(view, state, list);
    }),
  );
}

function nameOf(row) {
  const link = element("a", { href: `/topics/${encodeURIComponent(row.name)}` }, row.name);
  return row.is_internal ? [link, " ", element("span", { class: "badge" }, "internal")] : link;
}

function wrong(row) {
  if (row.offline) return element("span", { class: "bad" }, `${number(row.offline)} without a leader`);
  return row.under_replicated ? element("span", { class: "warning" }, number(row.under_replicated)) : 0;
}

function createDialog(view) {
  formDialog({
    title: "Create topic",
    action: "Create",
    fields: [
      field({ label: "Name", name: "name", required: true, maxlength: 249, autocomplete: "off" }),
      field({ label: "Partitions", name: "partitions", type: "number", min: 1, hint: "Empty: the broker's default." }),
      field({ label: "Replicas", name: "replicas", type: "number", min: 1, hint: "Empty: the broker's default." }),
      field({ label: "Configs", name: "configs", type: "textarea", hint: "One a line, such as retention.ms=86400000." }),
    ],
    submit: async ({ name, partitions, replicas, configs }) => {
      const body = { name, configs: parseConfigs(configs) };
      if (partitions) body.partitions = Number(partitions);
      if (replicas) body.replicas = Number(replicas);
      await view.change("POST", "/topics", body);
      view.say(`Topic ${name} is created.`);
      view.go(`/topics/${encodeURIComponent(name)}`);
    },
  });
}

function parseConfigs(text) {
  const configs = {};
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const at = line.indexOf("=");
    if (at < 1) throw Object.assign(new Error(`"${line.slice(0, 60)}" is not KEY=VALUE`), { errorName: "INVALID_CONFIG" });
    configs[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return configs;
}
