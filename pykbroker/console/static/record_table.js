// A table of records, with a link to each.

import { element } from "./dom.js";
import { timeInUtc } from "./format.js";
import { contentInLine, timeOf } from "./record_text.js";
import { table } from "./table.js";

export function recordTable(address, rows, { caption = "Records", empty = "There are no records here." } = {}) {
  return table({
    caption,
    rows,
    empty,
    columns: [
      { title: "Partition", number: true, cell: (row) => String(row.partition) },
      { title: "Offset", number: true, head: true, cell: (row) => linkTo(address, row) },
      { title: "Time", cell: (row) => element("span", { class: "when", title: timeInUtc(row.timestamp) }, timeOf(row.timestamp)) },
      { title: "Key", long: true, cell: (row) => contentInLine(row.key) },
      { title: "Value", long: true, cell: (row) => (row.problem ? problem(row) : contentInLine(row.value)) },
      { title: "Headers", number: true, cell: (row) => row.headers },
    ],
  });
}

export function addressOf(address, partition, offset) {
  return `${address}/records/${partition}/${offset}`;
}

function linkTo(address, row) {
  if (row.problem) return row.offset;
  const label = `Partition ${row.partition}, offset ${row.offset}`;
  return element("a", { href: addressOf(address, row.partition, row.offset), "aria-label": label }, row.offset);
}

function problem(row) {
  return element("span", { class: "bad" }, `A batch cannot be shown: ${row.problem}`);
}
