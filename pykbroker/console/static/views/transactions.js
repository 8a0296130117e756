// The transactions of all coordinators: filtered by the server, a page at a time.

import { element } from "../dom.js";
import { field } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

export async function show(view) {
  const state = { filter: view.query.get("filter") ?? "", state: view.query.get("state") ?? "", page: Number(view.query.get("page") ?? 1) || 1 };
  const list = element("section", { class: "panel" });
  const found = await view.get("/transactions", state);
  const load = async () => {
    view.remember({ ...state, page: state.page === 1 ? null : state.page });
    try {
      fill(state, list, await view.get("/transactions", state), load);
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  const chosen = (node, name) => {
    node.querySelector("input, select").addEventListener("change", (event) => {
      Object.assign(state, { [name]: event.target.value, page: 1 });
      load();
    });
    return node;
  };
  const known = [...new Set([...found.states, state.state])].filter(Boolean);
  const options = [["", "all"], ...known.map((each) => [each, each])];
  view.show(
    "Transactions",
    element(
      "div",
      { class: "bar", role: "search" },
      chosen(field({ label: "Filter by transactional id", name: "filter", type: "search", value: state.filter }), "filter"),
      chosen(field({ label: "State", name: "state", type: "select", value: state.state, options }), "state"),
    ),
    list,
    element("p", { class: "hint" }, "Transactions that hang are on the page of a topic, as its producers: no coordinator knows of them."),
  );
  fill(state, list, found, load);
}

function fill(state, list, found, load) {
  const { transactions, errors } = found;
  state.page = transactions.page;
  const missing = Object.entries(errors).map(([id, error]) => `broker ${id} (${error})`);
  const address = (id) => `/transactions/transaction?${new URLSearchParams({ id })}`;
  redraw(
    list,
    missing.length ? element("p", { class: "warning" }, `Transactions are missing: of ${missing.join(", ")}.`) : "",
    table({
      caption: "Transactions",
      rows: transactions.rows,
      empty: state.filter || state.state ? "No transaction is like this." : "There are no transactions that you may see.",
      columns: [
        { title: "Transactional id", head: true, long: true, cell: (row) => element("a", { href: address(row.transactional_id) }, row.transactional_id) },
        { title: "State", cell: (row) => row.state },
        { title: "Producer id", number: true, cell: (row) => String(row.producer_id) },
        { title: "Coordinator", number: true, cell: (row) => String(row.coordinator) },
      ],
    }),
    pager(transactions, transactions.total === 1 ? "transaction" : "transactions", (page) => {
      state.page = page;
      load();
    }),
  );
}
