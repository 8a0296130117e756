// Entries of access control lists: filtered by the server, added and removed.

import { element } from "../dom.js";
import { destroyDialog, field, formDialog } from "../forms.js";
import { redraw } from "../redraw.js";
import { failureOf } from "../status.js";
import { pager, table } from "../table.js";

const RESOURCES = ["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"];
const OPERATIONS = [
  ...["ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS"],
  ...["ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"],
];
const PERMISSIONS = ["ALLOW", "DENY"];
const CLUSTER_NAME = "kafka-cluster";
const FILTERS = ["resource_type", "name", "principal", "operation", "permission"];

export async function show(view) {
  const state = { ...Object.fromEntries(FILTERS.map((each) => [each, view.query.get(each) ?? ""])), page: Number(view.query.get("page") ?? 1) || 1 };
  const list = element("section", { class: "panel" });
  const load = async () => {
    view.remember({ ...Object.fromEntries(FILTERS.map((each) => [each, state[each]])), page: state.page === 1 ? null : state.page });
    try {
      fill(view, state, list, await view.get("/acls", state), load);
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  try {
    const found = await view.get("/acls", state);
    view.show("ACLs", bar(view, state, load), list);
    fill(view, state, list, found, load);
  } catch (error) {
    if (error.errorName !== "SECURITY_DISABLED") throw error;
    view.show("ACLs", element("p", {}, "This broker has no authorizer: everybody may do everything."), failureOf(error));
  }
}

function bar(view, state, load) {
  const chosen = (node, name) => {
    node.querySelector("input, select").addEventListener("change", (event) => {
      Object.assign(state, { [name]: event.target.value, page: 1 });
      load();
    });
    return node;
  };
  const any = (values) => [["", "any"], ...values.map((each) => [each, each])];
  const choice = (label, name, values) => chosen(field({ label, name, type: "select", value: state[name], options: any(values) }), name);
  return element(
    "div",
    { class: "bar", role: "search" },
    choice("Resource type", "resource_type", RESOURCES),
    chosen(field({ label: "Resource", name: "name", type: "search", value: state.name }), "name"),
    chosen(field({ label: "Principal", name: "principal", type: "search", value: state.principal, placeholder: "User:alice" }), "principal"),
    choice("Operation", "operation", OPERATIONS),
    choice("Permission", "permission", PERMISSIONS),
    view.mayChange ? element("button", { type: "button", class: "end", onclick: () => addDialog(view, load) }, "Add ACL") : null,
  );
}

function fill(view, state, list, found, load) {
  state.page = found.page;
  const isKnown = (row) => [row.resource_type, row.pattern_type, row.operation, row.permission].every((each) => each !== "UNKNOWN");
  const remove = (row) =>
    element(
      "button",
      { type: "button", class: "danger", "aria-label": `Remove ${textOf(row)}`, onclick: () => removeDialog(view, row, load) },
      "Remove",
    );
  redraw(
    list,
    table({
      caption: "ACLs",
      rows: found.rows,
      empty: FILTERS.some((each) => state[each]) ? "No entry is like this." : "There are no entries.",
      columns: [
        { title: "Principal", head: true, long: true, cell: (row) => row.principal },
        { title: "Permission", cell: (row) => element("span", { class: row.permission === "DENY" ? "bad" : "good" }, row.permission) },
        { title: "Operation", cell: (row) => row.operation },
        { title: "Type", cell: (row) => row.resource_type },
        { title: "Resource", long: true, cell: (row) => row.resource_name },
        { title: "Pattern", cell: (row) => row.pattern_type },
        { title: "Host", cell: (row) => row.host },
        ...(view.mayChange ? [{ title: "Change", cell: (row) => (isKnown(row) ? remove(row) : "") }] : []),
      ],
    }),
    pager(found, found.total === 1 ? "entry" : "entries", (page) => {
      state.page = page;
      load();
    }),
  );
}

function textOf(row) {
  return `${row.permission} ${row.operation} of ${row.principal} on ${row.resource_type} ${row.resource_name}`;
}

function addDialog(view, load) {
  const choice = (label, name, values) => field({ label, name, type: "select", value: values[0], options: values.map((each) => [each, each]) });
  const dialog = formDialog({
    title: "Add ACL",
    action: "Add",
    fields: [
      field({ label: "Who", name: "principal", required: true, autocomplete: "off", value: "User:", hint: "User:alice, or User:* for everybody." }),
      choice("May or may not", "permission", PERMISSIONS),
      choice("Do what", "operation", OPERATIONS),
      choice("On which type", "resource_type", RESOURCES),
      field({ label: "Name of the resource", name: "resource_name", required: true, autocomplete: "off", hint: "* for all of the type." }),
      choice("The name is", "pattern_type", ["LITERAL", "PREFIXED"]),
      field({ label: "From host", name: "host", required: true, value: "*", hint: "An address, or * for any." }),
    ],
    submit: async (values) => {
      await view.change("POST", "/acls", values);
      view.say(`Added: ${textOf(values)}.`);
      await load();
    },
  });
  const { elements } = dialog.querySelector("form");
  elements.resource_type.addEventListener("change", () => {
    if (elements.resource_type.value === "CLUSTER") elements.resource_name.value = CLUSTER_NAME;
  });
}

function removeDialog(view, row, load) {
  destroyDialog({
    title: "Remove",
    description: `${textOf(row)} (${row.pattern_type}, from ${row.host}) holds no more.`,
    name: row.principal,
    action: "Remove the entry",
    submit: async (confirm) => {
      await view.change("DELETE", "/acls", { ...row, confirm });
      view.say(`Removed: ${textOf(row)}.`);
      await load();
    },
  });
}
