// Quotas of users, client ids, both together, and addresses: listed, set, removed.

import { element } from "../dom.js";
import { NOTHING } from "../format.js";
import { destroyDialog, field, filterField, formDialog } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

const OF_CLIENTS = [
  ["producer_byte_rate", "Produced bytes per second", "Produced B/s"],
  ["consumer_byte_rate", "Fetched bytes per second", "Fetched B/s"],
  ["request_percentage", "Percentage of request time", "Request time %"],
  ["controller_mutation_rate", "Partition changes per second", "Changes/s"],
];
const OF_ADDRESSES = [["connection_creation_rate", "New connections per second", "Connections/s"]];
const KINDS = [
  ["user", "a user", ["user"]],
  ["client-id", "a client id", ["client_id"]],
  ["user and client-id", "a client id of a user", ["user", "client_id"]],
  ["ip", "an address", ["ip"]],
];
const NAMES = { user: "User", client_id: "Client id", ip: "Address" };

export async function show(view) {
  const state = { filter: view.query.get("filter") ?? "", kind: view.query.get("kind") ?? "", page: Number(view.query.get("page") ?? 1) || 1 };
  const list = element("section", { class: "panel" });
  const found = await view.get("/quotas", state);
  const load = async () => {
    view.remember({ filter: state.filter, kind: state.kind, page: state.page === 1 ? null : state.page });
    try {
      fill(view, state, list, await view.get("/quotas", state), load);
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  const kind = field({ label: "For", name: "kind", type: "select", value: state.kind, options: [["", "all"], ...KINDS.map(([name, text]) => [name, text])] });
  kind.querySelector("select").addEventListener("change", (event) => {
    Object.assign(state, { kind: event.target.value, page: 1 });
    load();
  });
  const add = element("button", { type: "button", class: "end", onclick: () => addDialog(view, load) }, "Set quotas");
  const note = element("p", { class: "hint" }, "What goes beyond a quota waits, and is not lost. The most special quota holds: a client id of a user, then the user, then the client id, each by name before its default.");
  view.show("Quotas", element("div", { class: "bar", role: "search" }, filterField(state, load), kind, view.mayChange ? add : null), list, note);
  fill(view, state, list, found, load);
}

function fill(view, state, list, found, load) {
  state.page = found.page;
  const button = (row, text, kind, open) =>
    element("button", { type: "button", class: kind, "aria-label": `${text} the quotas of ${row.label}`, onclick: open }, text);
  const buttons = (row) =>
    element(
      "div",
      { class: "buttons" },
      row.kind === "other" ? null : button(row, "Change", "quiet", () => changeDialog(view, row, load)),
      row.kind === "other" ? null : button(row, "Remove", "danger", () => removeDialog(view, row, load)),
    );
  redraw(
    list,
    table({
      caption: "Quotas",
      rows: found.rows,
      empty: state.filter || state.kind ? "No quota is like this." : "There are no quotas: nobody is slowed down.",
      columns: [
        { title: "For", head: true, long: true, cell: (row) => row.label },
        ...[...OF_CLIENTS, ...OF_ADDRESSES].map(([key, , title]) => ({ title, number: true, cell: (row) => grouped(row.values[key]) })),
        ...(view.mayChange ? [{ title: "Change", cell: buttons }] : []),
      ],
    }),
    pager(found, found.total === 1 ? "entity" : "entities", (page) => {
      state.page = page;
      load();
    }),
  );
}

// A number, which may be larger than the browser's, with its digits in groups.
function grouped(text) {
  if (text === undefined) return NOTHING;
  return /^\d+$/.test(text) ? new Intl.NumberFormat("en").format(BigInt(text)) : text;
}

// ---- what may be done

function entries(keys, values = {}) {
  return keys.map(([key, label]) => field({ label, name: key, type: "text", inputmode: "decimal", value: values[key] ?? "", autocomplete: "off", maxlength: 40 }));
}

// What is set and what is removed, where an empty field is no quota.
function changeOf(keys, values, before = {}) {
  const given = keys.map(([key]) => [key, values[key].trim()]);
  return {
    set: Object.fromEntries(given.filter(([key, text]) => text && text !== before[key])),
    delete: given.filter(([key, text]) => !text && before[key] !== undefined).map(([key]) => key),
  };
}

function addDialog(view, load) {
  const parts = Object.entries(NAMES).map(([name, label]) => [name, field({ label, name, autocomplete: "off", autocapitalize: "none", hint: "Empty: the default, for all without a quota of their own." })]);
  const ofClients = element("div", { class: "fields" }, entries(OF_CLIENTS));
  const ofAddresses = element("div", { class: "fields" }, entries(OF_ADDRESSES));
  const kind = field({ label: "For", name: "kind", type: "select", value: "user", options: KINDS.map(([name, text]) => [name, text]) });
  const chosen = () => KINDS.find(([name]) => name === kind.querySelector("select").value);
  const shown = () => {
    const [name, , names] = chosen();
    for (const [part, node] of parts) node.hidden = !names.includes(part);
    ofClients.hidden = name === "ip";
    ofAddresses.hidden = name !== "ip";
  };
  kind.querySelector("select").addEventListener("change", shown);
  shown();
  formDialog({
    title: "Set quotas",
    description: "Quotas that are left empty stay as they are.",
    action: "Set",
    fields: [kind, ...parts.map(([, node]) => node), ofClients, ofAddresses],
    submit: async (values) => {
      const [name, , names] = chosen();
      const entity = Object.fromEntries(names.map((each) => [each, values[each]]));
      const { set } = changeOf(name === "ip" ? OF_ADDRESSES : OF_CLIENTS, values);
      await view.change("PUT", "/quotas", { ...entity, set });
      view.say("The quotas are set.");
      await load();
    },
  });
}

function changeDialog(view, row, load) {
  const keys = row.kind === "ip" ? OF_ADDRESSES : OF_CLIENTS;
  formDialog({
    title: "Change the quotas",
    description: `For ${row.label}. An empty field is no quota.`,
    action: "Save",
    fields: entries(keys, row.values),
    submit: async (values) => {
      await view.change("PUT", "/quotas", { ...entityOf(row), ...changeOf(keys, values, row.values) });
      view.say(`The quotas of ${row.label} are changed.`);
      await load();
    },
  });
}

function removeDialog(view, row, load) {
  destroyDialog({
    title: "Remove",
    description: `All quotas of ${row.label} are removed: what holds for less special ones holds then.`,
    name: row.label,
    action: "Remove the quotas",
    submit: async (confirm) => {
      await view.change("DELETE", "/quotas", { ...entityOf(row), confirm });
      view.say(`The quotas of ${row.label} are removed.`);
      await load();
    },
  });
}

function entityOf(row) {
  return Object.fromEntries(Object.entries(row.names).map(([name, value]) => [name, value ?? ""]));
}
