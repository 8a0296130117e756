// A topic: its partitions with leaders, in-sync replicas, offsets and sizes; its configs; what may be done to it.

import { element } from "../dom.js";
import { NOTHING, bytes, number, plural } from "../format.js";
import { destroyDialog, field, formDialog } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

export async function show(view) {
  const { name } = view.params;
  const address = `/topics/${encodeURIComponent(name)}`;
  const state = { page: Number(view.query.get("page") ?? 1) || 1 };
  const [topic, configs] = await Promise.all([view.get(address, state), configsOf(view, address)]);
  const facts = element("dl", { class: "facts" });
  const partitions = element("section", { class: "panel" });
  view.show(`Topic ${name}`, facts, actions(view, topic, address), partitions, configs);
  fill(view, state, facts, partitions, topic, address);
  view.pause(5_000).then(() =>
    view.every(5_000, async () => fill(view, state, facts, partitions, await view.get(address, state), address)),
  );
}

function fill(view, state, facts, partitions, topic, address) {
  const { rows } = topic.partitions;
  const records = sum(rows.map((row) => (row.end_offset === null ? null : row.end_offset - row.first_offset)));
  const isAll = topic.partitions.pages === 1;
  const kind = topic.offline ? "bad" : topic.under_replicated ? "warning" : "good";
  const wrong = topic.offline ? `${number(topic.offline)} without a leader` : number(topic.under_replicated);
  redraw(
    facts,
    fact("Partitions", number(topic.partitions.total)),
    fact("Under-replicated", wrong, kind),
    fact(isAll ? "Offsets in use" : "Offsets in use, this page", number(records)),
    fact(isAll ? "Size of the leaders" : "Size, this page", bytes(sum(rows.map((row) => row.size_bytes)))),
    fact("Topic id", topic.topic_id, "small mono"),
  );
  redraw(
    partitions,
    partitionTable(rows),
    pager(topic.partitions, topic.partitions.total === 1 ? "partition" : "partitions", async (page) => {
      state.page = page;
      view.remember({ page: page === 1 ? null : page });
      try {
        fill(view, state, facts, partitions, await view.get(address, state), address);
      } catch (error) {
        view.fail(error);
      }
    }),
  );
}

function fact(title, text, kind = null) {
  return element("div", {}, element("dt", {}, title), element("dd", { class: kind }, text));
}

function sum(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((total, value) => total + value, 0) : null;
}

function partitionTable(rows) {
  const inSync = (row) => {
    const text = row.isr.join(", ");
    return row.isr.length < row.replicas.length ? element("span", { class: "warning" }, text || "none") : text;
  };
  return table({
    caption: "Partitions",
    rows,
    columns: [
      { title: "Partition", head: true, number: true, cell: (row) => String(row.partition) },
      { title: "Leader", number: true, cell: (row) => (row.leader === null ? element("span", { class: "bad" }, "none") : String(row.leader)) },
      { title: "Replicas", cell: (row) => row.replicas.join(", ") },
      { title: "In sync", cell: inSync },
      { title: "First offset", number: true, cell: (row) => number(row.first_offset) },
      { title: "End offset", number: true, cell: (row) => number(row.end_offset) },
      { title: "Size", number: true, cell: (row) => bytes(row.size_bytes) },
      { title: "Error", cell: (row) => (row.error ? element("span", { class: "bad" }, row.error) : "") },
    ],
  });
}

// ---- what may be done

function actions(view, topic, address) {
  if (!view.mayChange || topic.is_internal) return null;
  const button = (text, kind, open) => element("button", { type: "button", class: kind, onclick: open }, text);
  return element(
    "div",
    { class: "bar buttons" },
    button("Add partitions", "quiet", () => growDialog(view, topic, address)),
    button("Purge", "quiet", () => purgeDialog(view, topic, address)),
    button("Delete", "danger", () => deleteDialog(view, topic, address)),
  );
}

function growDialog(view, topic, address) {
  const { total } = topic.partitions;
  formDialog({
    title: "Add partitions",
    description: "Records with a key go to other partitions from then on; partitions cannot be taken away again.",
    action: "Add",
    fields: [field({ label: "Partitions in all", name: "partitions", type: "number", min: total + 1, value: total + 1, required: true })],
    submit: async ({ partitions }) => {
      await view.change("PUT", `${address}/partitions`, { partitions: Number(partitions) });
      view.say(`${topic.name} has ${plural(Number(partitions), "partition")}.`);
      view.again();
    },
  });
}

function purgeDialog(view, topic, address) {
  destroyDialog({
    title: "Purge",
    description: `All records that are in ${topic.name} now are deleted. The topic and its configs stay.`,
    name: topic.name,
    action: "Delete all records",
    submit: async (confirm) => {
      const { failed } = await view.change("DELETE", `${address}/records`, { confirm });
      const errors = Object.entries(failed).map(([partition, error]) => `${partition}: ${error}`);
      view.say(errors.length ? `Not all partitions are purged (${errors.slice(0, 5).join(", ")}).` : `${topic.name} is purged.`);
      view.again();
    },
  });
}

function deleteDialog(view, topic, address) {
  destroyDialog({
    title: "Delete",
    description: `${topic.name} and all its records are deleted. Nothing brings them back.`,
    name: topic.name,
    action: "Delete the topic",
    submit: async (confirm) => {
      await view.change("DELETE", address, { confirm });
      view.say(`Topic ${topic.name} is deleted.`);
      view.go("/topics");
    },
  });
}

// ---- configs

async function configsOf(view, address) {
  const panel = element("section", { class: "panel" });
  try {
    fillConfigs(view, address, panel, await view.get(`${address}/configs`));
  } catch (error) {
    if (error.errorName !== "TOPIC_AUTHORIZATION_FAILED") throw error;
    redraw(panel, element("h2", {}, "Configs"), element("p", {}, "You may not see this topic's configs."));
  }
  return panel;
}

function fillConfigs(view, address, panel, configs) {
  const all = field({ label: "Defaults too", name: "defaults", type: "checkbox" });
  const place = element("div");
  const show = (defaults) => redraw(place, configTable(view, address, panel, defaults ? configs : configs.filter((row) => row.is_set_here)));
  all.querySelector("input").addEventListener("change", (event) => show(event.target.checked));
  show(false);
  const set = element("button", { type: "button", class: "quiet end", onclick: () => configDialog(view, address, panel, configs, null) }, "Set a config");
  redraw(panel, element("div", { class: "bar" }, all, view.mayChange ? set : null), place);
}

function configTable(view, address, panel, configs) {
  const edit = (row) =>
    element(
      "button",
      { type: "button", class: "quiet", "aria-label": `Change ${row.name}`, onclick: () => configDialog(view, address, panel, configs, row) },
      "Change",
    );
  return table({
    caption: "Configs",
    rows: configs,
    empty: "This topic has no configs of its own: the defaults hold.",
    columns: [
      { title: "Name", head: true, long: true, cell: (row) => [row.name, row.documentation ? element("p", { class: "hint" }, row.documentation) : null] },
      { title: "Value", long: true, cell: (row) => (row.is_sensitive ? "hidden" : element("span", { class: "mono" }, row.value ?? NOTHING)) },
      { title: "Source", cell: (row) => row.source },
      ...(view.mayChange ? [{ title: "Change", cell: (row) => (row.is_read_only ? "" : edit(row)) }] : []),
    ],
  });
}

function configDialog(view, address, panel, configs, row) {
  const names = configs.filter((each) => !each.is_read_only).map((each) => [each.name, each.name]);
  const name = row
    ? element("p", { class: "mono" }, row.name)
    : field({ label: "Config", name: "name", type: "select", options: names });
  const back = row?.is_set_here ? field({ label: "Back to the default", name: "reset", type: "checkbox" }) : null;
  formDialog({
    title: row ? "Change a config" : "Set a config",
    action: "Save",
    fields: [name, field({ label: "Value", name: "value", value: row?.is_sensitive ? "" : (row?.value ?? "") }), ...(back ? [back] : [])],
    submit: async (values) => {
      const key = row?.name ?? values.name;
      const body = values.reset ? { delete: [key] } : { set: { [key]: values.value } };
      await view.change("PUT", `${address}/configs`, body);
      view.say(`${key} is ${values.reset ? "back at its default" : "changed"}.`);
      fillConfigs(view, address, panel, await view.get(`${address}/configs`));
    },
  });
}
