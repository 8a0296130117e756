// Records as they come, newest on top, with a pause. What comes too fast to be read is counted.

import { element } from "../dom.js";
import { number, plural } from "../format.js";
import { field } from "../forms.js";
import { recordTable } from "../record_table.js";
import { redraw, untilLetGo } from "../redraw.js";

const MOST_ROWS = 200;
const AGAIN_MS = 500;
const BACK_MS = 2_000;

export async function show(view) {
  const { name } = view.params;
  const address = `/topics/${encodeURIComponent(name)}`;
  const state = {
    partition: view.query.get("partition") ?? "",
    committed: view.query.get("committed") === "true",
    rows: [],
    waiting: [],
    leftOut: 0,
    isPaused: false,
    line: "Waiting for the broker …",
    trouble: null,
  };
  await view.get(address, { size: 1 });
  const line = element("p", { class: "hint", role: "status" });
  const list = element("section", { class: "panel" });
  view.show(`Topic ${name}`, bar(view, state, () => draw(address, state, line, list)), line, list);
  draw(address, state, line, list);
  follow(view, address, state, () => untilLetGo().then(() => draw(address, state, line, list)));
}

function bar(view, state, show) {
  const partition = field({ label: "Partition", name: "partition", type: "number", min: 0, value: state.partition, hint: "Empty: all of them." });
  partition.querySelector("input").addEventListener("change", (event) => {
    view.remember({ partition: event.target.value });
    view.again();
  });
  const committed = field({ label: "Committed records alone", name: "committed", type: "checkbox", value: state.committed });
  committed.querySelector("input").addEventListener("change", (event) => {
    view.remember({ committed: event.target.checked });
    view.again();
  });
  const pause = element("button", { type: "button", class: "end" }, "Pause");
  pause.addEventListener("click", () => {
    state.isPaused = !state.isPaused;
    pause.textContent = state.isPaused ? "Go on" : "Pause";
    if (!state.isPaused) {
      add(state, state.waiting);
      state.waiting = [];
    }
    show();
  });
  return element("div", { class: "bar" }, partition, committed, pause);
}

function follow(view, address, state, show) {
  let timer = null;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = null;
      if (!view.signal.aborted) show();
    }, AGAIN_MS / 2);
  };
  view.events(
    `${address}/records/tail`,
    { partition: state.partition, committed: state.committed },
    {
      begin: ({ partitions, followed }) => {
        view.works();
        const of = followed < partitions ? ` of ${number(partitions)}: choose one for another` : "";
        state.line = state.partition === "" ? `Listening to ${plural(followed, "partition")}${of}.` : `Listening to partition ${state.partition}.`;
        show();
      },
      records: ({ rows, left_out: leftOut }) => {
        state.leftOut += leftOut;
        if (state.isPaused) wait(state, rows);
        else add(state, rows);
        soon();
      },
      trouble: ({ name }) => {
        state.trouble = name;
        soon();
      },
      end: () => {
        state.line = "The stream has ended: load the page anew to listen on.";
        show();
      },
      failure: (error) => {
        const isLost = error.errorName === "NETWORK_EXCEPTION";
        state.line = isLost ? "The stream is lost: what comes meanwhile is not shown." : "The stream has ended.";
        show();
        view.fail(error);
        if (isLost) view.pause(BACK_MS).then(() => view.signal.aborted || follow(view, address, state, show));
      },
    },
  );
}

function add(state, rows) {
  state.rows = [...rows].reverse().concat(state.rows).slice(0, MOST_ROWS);
}

function wait(state, rows) {
  state.waiting.push(...rows);
  const beyond = state.waiting.length - MOST_ROWS;
  if (beyond <= 0) return;
  state.waiting.splice(0, beyond);
  state.leftOut += beyond;
}

function draw(address, state, line, list) {
  const left = state.leftOut ? ` ${plural(state.leftOut, "record")} came too fast and are left out.` : "";
  const paused = state.isPaused ? ` Paused: ${plural(state.waiting.length, "record")} waiting.` : "";
  const trouble = state.trouble ? ` ${state.trouble}: trying again.` : "";
  line.textContent = state.line + left + paused + trouble;
  redraw(list, recordTable(address, state.rows, { caption: "New records", empty: "Nothing has come so far." }));
}
