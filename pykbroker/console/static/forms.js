// Fields with labels, and dialogs with a form. A dialog stays, with the failure in it, until what it asks for is done.

import { element, newId } from "./dom.js";
import { failureOf } from "./status.js";
import { readable } from "./unseen.js";

const TYPING_MS = 200;

// A field: { label, name, type: "text" | "number" | "password" | "textarea" | "select" | "checkbox", value, hint, required,
// options: [[value, text], …] of a select; other attributes as HTML has them }.
export function field({ label, name, type = "text", value = "", hint = null, options = [], ...attributes }) {
  const id = newId("field");
  const hintId = hint ? newId("hint") : null;
  const given = { id, name, "aria-describedby": hintId, ...attributes };
  if (type === "checkbox") {
    return element("div", {}, element("label", { class: "check" }, element("input", { ...given, type, checked: Boolean(value) }), label));
  }
  const input = inputOf(type, given, value, options);
  return element(
    "div",
    {},
    element("label", { for: id }, label),
    input,
    hint ? element("p", { class: "hint", id: hintId }, hint) : null,
  );
}

function inputOf(type, attributes, value, options) {
  if (type === "select") {
    const choices = options.map(([each, text]) => element("option", { value: each, selected: each === value }, text));
    return element("select", attributes, choices);
  }
  const input = type === "textarea" ? element("textarea", { rows: 4, ...attributes }) : element("input", { ...attributes, type });
  input.value = value;
  return input;
}

// The values of a form by name: text, or true and false of checkboxes.
export function valuesOf(form) {
  const values = {};
  for (const input of form.elements) {
    if (input.name) values[input.name] = input.type === "checkbox" ? input.checked : input.value;
  }
  return values;
}

// Has `submit` called with the form's values; meanwhile the button waits, and a failure is shown above it.
export function onSubmit(form, submit) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button[type=submit]");
    if (button.disabled) return;
    button.disabled = true;
    form.querySelector(".failure")?.remove();
    try {
      await submit(valuesOf(form));
    } catch (error) {
      if (form.isConnected) button.closest(".buttons").before(failureOf(error));
    } finally {
      button.disabled = false;
    }
  });
}

// Opens a dialog; `submit` gets the values, and closes it when it returns. fields: elements.
export function formDialog({ title, description = null, fields = [], action, danger = false, submit }) {
  const titleId = newId("title");
  const form = element(
    "form",
    { novalidate: false },
    element("h2", { id: titleId }, title),
    description ? element("p", {}, description) : null,
    ...fields,
    element(
      "div",
      { class: "buttons" },
      element("button", { type: "submit", class: danger ? "danger" : null }, action),
      element("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
    ),
  );
  const dialog = element("dialog", { "aria-labelledby": titleId }, form);
  dialog.addEventListener("close", () => dialog.remove());
  onSubmit(form, async (values) => {
    await submit(values);
    dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// A dialog for what destroys: the name is typed once more before anything happens, as it is or as it is shown. submit gets
// the name.
export function destroyDialog({ title, description, name, action, submit }) {
  return formDialog({
    title,
    description,
    danger: true,
    action,
    fields: [field({ label: `Type ${name} to confirm`, name: "confirm", required: true, autocomplete: "off" })],
    submit: async ({ confirm }) => {
      if (![name, readable(name)].includes(confirm)) throw Object.assign(new Error("this is not the name"), { errorName: "NOT_CONFIRMED" });
      await submit(name);
    },
  });
}

// A filter by name, of the pages' state: a list is asked for again when nobody types any more.
export function filterField(state, changed) {
  let timer;
  const filter = field({ label: "Filter by name", name: "filter", type: "search", value: state.filter });
  filter.querySelector("input").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      Object.assign(state, { filter: event.target.value, page: 1 });
      changed();
    }, TYPING_MS);
  });
  return filter;
}
