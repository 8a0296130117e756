// A form for one record. `written` gets where it is.

import { field, formDialog } from "./forms.js";

const TEXTS = [["text", "Text"], ["json", "JSON"], ["hex", "Hex"]];

export function produceDialog(view, address, written) {
  formDialog({
    title: "Produce a record",
    action: "Produce",
    fields: [
      field({ label: "To partition", name: "partition", type: "number", min: 0, hint: "Empty: the key decides, as with Kafka's own producer." }),
      field({ label: "Kind of key", name: "key_kind", type: "select", value: "text", options: [...TEXTS, ["null", "None (null)"]] }),
      field({ label: "Key of the record", name: "key", autocomplete: "off", hint: "Empty text: no key." }),
      field({ label: "Kind of value", name: "value_kind", type: "select", value: "text", options: [...TEXTS, ["null", "Tombstone (null)"]] }),
      field({ label: "Value", name: "value", type: "textarea", rows: 6 }),
      field({ label: "Headers", name: "headers", type: "textarea", rows: 2, hint: "One a line, such as trace=17." }),
    ],
    submit: async (values) => {
      const hasNoKey = values.key_kind === "text" && values.key === "";
      const body = {
        key: values.key,
        key_kind: hasNoKey ? "null" : values.key_kind,
        value: values.value,
        value_kind: values.value_kind,
        headers: values.headers.split("\n").filter((each) => each.trim()),
      };
      if (values.partition !== "") body.partition = Number(values.partition);
      const record = await view.change("POST", `${address}/records`, body);
      view.say(`Written to partition ${record.partition} at offset ${record.offset}.`);
      written(record);
    },
  });
}
