// The producers of a partition, and transactions that hang there: nobody else would end them.

import { element } from "../dom.js";
import { NOTHING, plural, time } from "../format.js";
import { destroyDialog, field } from "../forms.js";
import { redraw } from "../redraw.js";
import { pager, table } from "../table.js";

export async function show(view) {
  const { name } = view.params;
  const address = `/topics/${encodeURIComponent(name)}/producers`;
  const state = { partition: view.query.get("partition") ?? "0", page: 1 };
  const list = element("section", { class: "panel" });
  const load = async () => {
    view.remember({ partition: state.partition });
    try {
      fill(page, await view.get(address, state));
      view.works();
    } catch (error) {
      view.fail(error);
    }
  };
  const page = { view, name, address, state, list, load };
  const partition = field({ label: "Partition", name: "partition", type: "number", min: 0, step: 1, value: state.partition });
  partition.querySelector("input").addEventListener("change", (event) => {
    Object.assign(state, { partition: event.target.value, page: 1 });
    load();
  });
  view.show(`Topic ${name}`, element("div", { class: "bar" }, partition), list);
  await load();
}

function fill(page, found) {
  const { view, state, list, load } = page;
  const { producers } = found;
  state.page = producers.page;
  const abort = (row) =>
    element("button", { type: "button", class: "danger", "aria-label": `Abort the transaction of producer ${row.producer_id}`, onclick: () => abortDialog(page, row) }, "Abort");
  const transactionOf = (row) => {
    if (row.start_offset === null) return NOTHING;
    const text = `open since offset ${row.start_offset}`;
    return row.is_hanging ? element("span", { class: "bad" }, `${text}, hangs`) : text;
  };
  redraw(
    list,
    found.error ? element("p", { class: "warning" }, `Whether transactions hang cannot be told: ${found.error}.`) : "",
    found.hanging ? element("p", { class: "bad" }, `${plural(found.hanging, "transaction")} here ${found.hanging === 1 ? "hangs" : "hang"}: readers of committed records wait.`) : "",
    table({
      caption: "Producers",
      rows: producers.rows,
      empty: "The leader of this partition knows of no producers.",
      columns: [
        { title: "Producer id", head: true, cell: (row) => String(row.producer_id) },
        { title: "Epoch", number: true, cell: (row) => String(row.producer_epoch) },
        { title: "Last sequence", number: true, cell: (row) => String(row.last_sequence) },
        { title: "Last record", cell: (row) => (row.last_timestamp_ms < 0 ? NOTHING : time(row.last_timestamp_ms)) },
        { title: "Transaction", cell: transactionOf },
        ...(view.mayChange ? [{ title: "Change", cell: (row) => (row.is_hanging ? abort(row) : "") }] : []),
      ],
    }),
    pager(producers, producers.total === 1 ? "producer" : "producers", (wanted) => {
      state.page = wanted;
      load();
    }),
  );
}

function abortDialog(page, row) {
  const { view, name, address, state, load } = page;
  destroyDialog({
    title: "Abort",
    description: `The records of producer ${row.producer_id} from offset ${row.start_offset} on are never shown to readers of committed records.`,
    name: `${name}-${state.partition}`,
    action: "Abort the transaction",
    submit: async (confirm) => {
      const body = { partition: Number(state.partition), producer_id: row.producer_id, start_offset: row.start_offset, confirm };
      await view.change("DELETE", `${address}/transaction`, body);
      view.say(`The transaction of producer ${row.producer_id} is aborted.`);
      await load();
    },
  });
}
