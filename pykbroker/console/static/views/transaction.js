// One transactional id: its producer, its state, and the partitions of its open transaction.

import { element } from "../dom.js";
import { NOTHING, number, time } from "../format.js";
import { redraw } from "../redraw.js";

const PERIOD_MS = 5_000;

export async function show(view) {
  const id = view.query.get("id") ?? "";
  const facts = element("dl", { class: "facts" });
  const partitions = element("section", { class: "panel" });
  const found = await view.get("/transaction", { id });
  view.show(`Transaction ${id}`, facts, partitions);
  fill(facts, partitions, found);
  view.pause(PERIOD_MS).then(() => view.every(PERIOD_MS, async () => fill(facts, partitions, await view.get("/transaction", { id }))));
}

function fill(facts, partitions, found) {
  redraw(
    facts,
    ...[
      ["State", found.state],
      ["Producer id", String(found.producer_id)],
      ["Producer epoch", String(found.producer_epoch)],
      ["Coordinator", `broker ${found.coordinator}`],
      ["Timeout", `${number(found.timeout_ms)} ms`],
      ["Began", found.started_ms === null ? NOTHING : time(found.started_ms)],
    ].map(([title, text]) => element("div", {}, element("dt", {}, title), element("dd", { class: "small" }, text))),
  );
  const more = found.count - found.partitions.length;
  const text = found.partitions.length ? `${found.partitions.join(", ")}${more ? ` and ${number(more)} more` : ""}` : "No partitions: no transaction is open.";
  redraw(partitions, element("h2", {}, "Partitions"), element("p", {}, text));
}
