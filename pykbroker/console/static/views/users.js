// Users that log in by SCRAM: new ones, other passwords, deletion. What is typed as a password goes to the broker alone.

import { element } from "../dom.js";
import { destroyDialog, field, formDialog } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

const MECHANISMS = ["SCRAM-SHA-512", "SCRAM-SHA-256"];

export async function show(view) {
  const state = { filter: view.query.get("filter") ?? "", page: 1 };
  const list = element("section", { class: "panel" });
  const found = await view.get("/users", state);
  const load = async () => {
    view.remember({ filter: state.filter });
    try {
      fill(view, state, list, await view.get("/users", state), load);
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  const filter = field({ label: "Filter by name", name: "filter", type: "search", value: state.filter });
  filter.querySelector("input").addEventListener("change", (event) => {
    Object.assign(state, { filter: event.target.value, page: 1 });
    load();
  });
  const create = element("button", { type: "button", class: "end", onclick: () => passwordDialog(view, null, load) }, "Create user");
  const note = element("p", { class: "hint" }, "These users log in by SCRAM, at listeners that offer it. Those of the broker's properties are not here.");
  view.show("Users", element("div", { class: "bar", role: "search" }, filter, view.mayChange ? create : null), list, note);
  fill(view, state, list, found, load);
}

function fill(view, state, list, found, load) {
  state.page = found.page;
  const change = (row) =>
    element("button", { type: "button", class: "quiet", "aria-label": `Change the password of ${row.user} (${row.mechanism})`, onclick: () => passwordDialog(view, row, load) }, "Change password");
  const remove = (row) =>
    element("button", { type: "button", class: "danger", "aria-label": `Delete ${row.user} (${row.mechanism})`, onclick: () => deleteDialog(view, row, load) }, "Delete");
  redraw(
    list,
    table({
      caption: "Users",
      rows: found.rows,
      empty: state.filter ? "No user's name has this in it." : "There are no users of SCRAM.",
      columns: [
        { title: "Name", head: true, long: true, cell: (row) => row.user },
        { title: "Mechanism", cell: (row) => row.mechanism },
        { title: "Iterations", number: true, cell: (row) => row.iterations },
        ...(view.mayChange ? [{ title: "Change", cell: (row) => element("div", { class: "buttons" }, change(row), remove(row)) }] : []),
      ],
    }),
    pager(found, found.total === 1 ? "credential" : "credentials", (page) => {
      state.page = page;
      load();
    }),
  );
}

function passwordDialog(view, row, load) {
  const isNew = row === null;
  const options = MECHANISMS.map((each) => [each, each]);
  const who = isNew
    ? [
        field({ label: "Name", name: "user", required: true, autocomplete: "off", autocapitalize: "none" }),
        field({ label: "Mechanism", name: "mechanism", type: "select", options, value: MECHANISMS[0] }),
      ]
    : [element("p", { class: "mono" }, `${row.user}, ${row.mechanism}`)];
  const password = (label, name) => field({ label, name, type: "password", required: true, autocomplete: "new-password" });
  formDialog({
    title: isNew ? "Create user" : "Change the password",
    description: isNew ? "A user that is there already gets this password." : null,
    action: isNew ? "Create" : "Change",
    fields: [...who, password("Password", "password"), password("Password again", "again")],
    submit: async ({ user = row?.user, mechanism = row?.mechanism, password, again }) => {
      if (password !== again) throw Object.assign(new Error("the two passwords are not the same"), { errorName: "NOT_CONFIRMED" });
      const iterations = row?.iterations;
      await view.change("PUT", "/users", { user, mechanism, password, ...(iterations ? { iterations } : {}) });
      view.say(isNew ? `User ${user} is created.` : `The password of ${user} is changed.`);
      await load();
    },
  });
}

function deleteDialog(view, row, load) {
  destroyDialog({
    title: "Delete",
    description: `${row.user} cannot log in by ${row.mechanism} any more. Connections that are open stay.`,
    name: row.user,
    action: "Delete the user",
    submit: async (confirm) => {
      await view.change("DELETE", "/users", { user: row.user, mechanism: row.mechanism, confirm });
      view.say(`${row.user} is deleted.`);
      await load();
    },
  });
}
