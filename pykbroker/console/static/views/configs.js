// Configs of a broker, or of all brokers: values with their source, and changes of those that may change while it runs.

import { element } from "../dom.js";
import { NOTHING } from "../format.js";
import { field, formDialog } from "../forms.js";
import { table } from "../table.js";

const DEFAULTS = "default";

export async function show(view) {
  const state = {
    broker: view.query.get("broker") ?? "",
    filter: view.query.get("filter") ?? "",
    changed: view.query.get("changed") !== "false",
  };
  const found = await view.get("/configs", { broker: state.broker });
  state.broker = found.broker;
  const page = { view, state, found, list: element("section", { class: "panel" }) };
  view.show(titleOf(state.broker), bar(page), page.list);
  fill(page);
}

function titleOf(broker) {
  return broker === DEFAULTS ? "Configs of all brokers" : `Configs of broker ${broker}`;
}

function bar(page) {
  const { view, state, found } = page;
  const known = found.brokers.map(String);
  const options = [...known.map((id) => [id, `Broker ${id}`]), [DEFAULTS, "All brokers"]];
  const broker = field({ label: "Of", name: "broker", type: "select", value: state.broker, options });
  broker.querySelector("select").addEventListener("change", (event) => view.go(`/configs?${new URLSearchParams({ broker: event.target.value })}`));
  const filter = field({ label: "Filter by name", name: "filter", type: "search", value: state.filter });
  filter.querySelector("input").addEventListener("input", (event) => {
    state.filter = event.target.value;
    view.remember({ filter: state.filter });
    fill(page);
  });
  const defaults = field({ label: "Defaults too", name: "defaults", type: "checkbox", value: !state.changed });
  defaults.querySelector("input").addEventListener("change", (event) => {
    state.changed = !event.target.checked;
    view.remember({ changed: state.changed ? null : "false" });
    fill(page);
  });
  const set = element("button", { type: "button", class: "end", onclick: () => dialog(page, null) }, "Set a config");
  return element("div", { class: "bar", role: "search" }, broker, filter, defaults, view.mayChange ? set : null);
}

function fill(page) {
  const { view, state, found } = page;
  const text = state.filter.toLowerCase();
  const rows = found.configs.filter((row) => row.name.toLowerCase().includes(text) && !(state.changed && row.source === "DEFAULT_CONFIG"));
  const change = (row) =>
    element("button", { type: "button", class: "quiet", "aria-label": `Change ${row.name}`, onclick: () => dialog(page, row) }, "Change");
  page.list.replaceChildren(
    table({
      caption: "Configs",
      rows,
      empty: state.changed ? "None is set: the defaults hold." : "No config's name has this in it.",
      columns: [
        { title: "Name", head: true, long: true, cell: (row) => [row.name, row.documentation ? element("p", { class: "hint" }, row.documentation) : null] },
        { title: "Value", long: true, cell: (row) => (row.is_sensitive ? "hidden" : element("span", { class: "mono" }, row.value ?? NOTHING)) },
        { title: "Source", cell: (row) => row.source },
        ...(view.mayChange ? [{ title: "Change", cell: (row) => (row.is_read_only ? element("span", { class: "faint" }, "at the start") : change(row)) }] : []),
      ],
    }),
  );
}

function dialog(page, row) {
  const { view, state } = page;
  const name = row ? element("p", { class: "mono" }, row.name) : field({ label: "Config", name: "name", required: true, autocomplete: "off" });
  const value = field({
    label: "Value",
    name: "value",
    type: row?.is_sensitive ? "password" : "text",
    value: row?.is_sensitive ? "" : (row?.value ?? ""),
    autocomplete: row?.is_sensitive ? "new-password" : "off",
  });
  const back = row?.is_set_here ? [field({ label: "Give up this value for the one below it", name: "reset", type: "checkbox" })] : [];
  formDialog({
    title: row ? "Change a config" : "Set a config",
    description: state.broker === DEFAULTS ? "It holds for all brokers that have no value of their own." : `It holds for broker ${state.broker}, at once.`,
    action: "Save",
    fields: [name, value, ...back],
    submit: async (values) => {
      const key = row?.name ?? values.name;
      const change = values.reset ? { delete: [key] } : { set: { [key]: values.value } };
      await view.change("PUT", "/configs", { broker: state.broker, ...change });
      view.say(`${key} is ${values.reset ? "given up" : "changed"}.`);
      page.found = await view.get("/configs", { broker: state.broker });
      fill(page);
    },
  });
}
