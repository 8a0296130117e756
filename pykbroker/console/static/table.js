// Tables with a caption, headers with a scope, and sorting by buttons in the headers.

import { element, nodes } from "./dom.js";
import { number } from "./format.js";

// columns: { title, cell: (row) => child, number: true for right-aligned, long: true for text that may break,
// head: true for the row's header, sort: name by which onSort is called }.
// sorted: { by, descending }, where the server sorts.
export function table({ caption, columns, rows, sorted = null, onSort = null, empty = "There is nothing here." }) {
  const head = element("tr", {}, columns.map((column) => headerCell(column, sorted, onSort)));
  const body = rows.map((row) => element("tr", {}, columns.map((column) => bodyCell(column, row))));
  const nothing = element("tr", {}, element("td", { colspan: columns.length, class: "faint" }, empty));
  return element(
    "div",
    { class: "scrolling", tabindex: "0", role: "region", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, head),
      element("tbody", {}, rows.length ? body : nothing),
    ),
  );
}

function headerCell(column, sorted, onSort) {
  const attributes = { scope: "col", class: classOf(column) };
  if (!column.sort || !onSort) return element("th", attributes, column.title);
  const here = sorted?.by === column.sort;
  if (here) attributes["aria-sort"] = sorted.descending ? "descending" : "ascending";
  const arrow = here ? (sorted.descending ? " ↓" : " ↑") : "";
  const sort = () => onSort(column.sort, here ? !sorted.descending : Boolean(column.number));
  return element(
    "th",
    attributes,
    element("button", { type: "button", onclick: sort, "data-sort": column.sort }, column.title, element("span", { "aria-hidden": "true" }, arrow)),
  );
}

function bodyCell(column, row) {
  const content = column.cell(row);
  const shown = typeof content === "number" ? number(content) : content;
  return column.head
    ? element("th", { scope: "row", class: classOf(column) }, nodes([shown]))
    : element("td", { class: classOf(column) }, nodes([shown]));
}

function classOf(column) {
  return [column.number && "number", column.long && "long"].filter(Boolean).join(" ") || null;
}

// Buttons to the pages before and behind. page: an answer of the API with page, pages and total.
export function pager(page, noun, onPage) {
  const where = `Page ${number(page.page)} of ${number(page.pages)}, ${number(page.total)} ${noun}`;
  if (page.pages <= 1) return element("p", { class: "pager faint" }, `${number(page.total)} ${noun}`);
  return element(
    "nav",
    { class: "pager", "aria-label": `Pages of ${noun}` },
    element("button", { type: "button", class: "quiet", disabled: page.page <= 1, onclick: () => onPage(page.page - 1) }, "Previous"),
    element("span", {}, where),
    element("button", { type: "button", class: "quiet", disabled: page.page >= page.pages, onclick: () => onPage(page.page + 1) }, "Next"),
  );
}
