// Users that log in by SCRAM: new ones, other passwords, deletion. What is typed as a password goes to the broker alone.
// Delegation tokens stand below, those that the reader may see.

import { element } from "../dom.js";
import { NOTHING, time } from "../format.js";
import { destroyDialog, field, filterField, formDialog } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

const MECHANISMS = ["SCRAM-SHA-512", "SCRAM-SHA-256"];

export async function show(view) {
  const state = { filter: view.query.get("filter") ?? "", page: Number(view.query.get("page") ?? 1) || 1 };
  const list = element("section", { class: "panel" });
  const tokens = element("section", { class: "panel" });
  const found = await view.get("/users", state);
  const load = async () => {
    view.remember({ filter: state.filter, page: state.page === 1 ? null : state.page });
    try {
      fill(view, state, list, await view.get("/users", state), load);
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  const create = element("button", { type: "button", class: "end", onclick: () => passwordDialog(view, null, load) }, "Create user");
  const note = element("p", { class: "hint" }, "These users log in by SCRAM, at listeners that offer it. Those of the broker's properties are not here.");
  view.show("Users", element("div", { class: "bar", role: "search" }, filterField(state, load), view.mayChange ? create : null), list, note, tokens);
  fill(view, state, list, found, load);
  await fillTokens(view, tokens, 1);
}

// A broker without delegation tokens says so in their place, and the users are shown.
async function fillTokens(view, place, page) {
  let found;
  try {
    found = await view.get("/tokens", { page });
  } catch (error) {
    if (!view.signal.aborted) redraw(place, element("h2", {}, "Delegation tokens"), element("p", { class: "hint" }, `${error.errorName}: ${error.message}`));
    return;
  }
  redraw(
    place,
    table({
      caption: "Delegation tokens",
      rows: found.rows,
      empty: "There are no tokens that you may see.",
      columns: [
        { title: "Token id", head: true, long: true, cell: (row) => element("span", { class: "mono" }, row.token_id) },
        { title: "Owner", long: true, cell: (row) => row.owner },
        { title: "Made by", long: true, cell: (row) => row.requester },
        { title: "Renewed by", long: true, cell: (row) => row.renewers.join(", ") || NOTHING },
        { title: "Expires", cell: (row) => time(row.expires_ms) },
        { title: "At the latest", cell: (row) => time(row.max_ms) },
      ],
    }),
    pager(found, found.total === 1 ? "token" : "tokens", (wanted) => fillTokens(view, place, wanted)),
  );
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
