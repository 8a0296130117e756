// What a page gets: its place, its address, the API, and what ends when the reader leaves it.

import * as api from "./api.js";
import { element } from "./dom.js";
import { untilLetGo } from "./redraw.js";
import { failureOf, say } from "./status.js";
import { tabs } from "./tabs.js";
import { readable } from "./unseen.js";

export class View {
  // main: the element that is the page's own. entry: the page's line in `views.js`. params: of the path, decoded. query:
  // URLSearchParams. session: the answer of GET /api/session. router: has go(address).
  constructor({ main, entry, params, query, session, router }) {
    this.main = main;
    this.entry = entry;
    this.params = params;
    this.query = query;
    this.session = session;
    this.router = router;
    this.left = new AbortController();
    this.asked = new Map();
    this.failures = element("div");
  }

  // Aborts when the reader leaves the page.
  get signal() {
    return this.left.signal;
  }

  get mayChange() {
    return !this.session.is_read_only;
  }

  // The answer comes when nothing is pressed, since the page is drawn anew with it. A later question for the same path
  // gives up the one before, whose answer could come behind: that one throws an AbortError, which `fail` does not show.
  async get(path, query = {}) {
    this.asked.get(path)?.abort();
    const overtaken = new AbortController();
    this.asked.set(path, overtaken);
    const answer = await api.get(path, query, AbortSignal.any([this.signal, overtaken.signal]));
    await untilLetGo();
    return answer;
  }

  // A change is not given up when the reader leaves: nobody would know whether it was made.
  change(method, path, body = {}) {
    return api.change(method, path, body);
  }

  // Live events of the server, which end with the page.
  events(path, query, handlers) {
    return api.events(path, query, handlers, this.signal);
  }

  // Shows a heading and what follows it in the place of all that was there.
  show(title, ...children) {
    document.title = `${this.titleOf(title)} – pykbroker`;
    this.failures = element("div");
    const links = this.entry ? tabs(this.entry, this.params) : null;
    this.main.replaceChildren(element("h1", { tabindex: "-1" }, title), ...[links, this.failures, ...children].filter(Boolean));
  }

  // The title of the browser's tab: of two pages of one topic, and of two records, each has its own.
  titleOf(title) {
    const { name, partition } = this.params;
    if (partition !== undefined) return `${title} of ${readable(name)}-${readable(partition)}`;
    return this.entry?.tab && this.entry.path !== this.entry.of ? `${readable(title)}, ${this.entry.tab}` : readable(title);
  }

  // Shows a failure below the heading, in the place of the one before. Nothing where the reader has left.
  fail(error) {
    if (this.signal.aborted || error.name === "AbortError") return;
    if (!this.failures.isConnected) this.show("This page cannot be shown");
    if (error.status === 401) this.router.logInAgain();
    this.failures.replaceChildren(failureOf(error));
  }

  // Takes failures away, as what works again shows.
  works() {
    this.failures.replaceChildren();
  }

  say(text) {
    say(text);
  }

  // Calls `work` now and again, every so many milliseconds, as long as the page is open and seen. An answer that takes long
  // is asked for less often: the broker has better things to do. A failure is shown, and work goes on.
  async every(periodMs, work) {
    while (!this.signal.aborted) {
      const began = performance.now();
      if (!document.hidden) {
        try {
          await work();
          this.works();
        } catch (error) {
          this.fail(error);
        }
      }
      await this.pause(Math.max(periodMs, 10 * (performance.now() - began)));
    }
  }

  pause(ms) {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.signal.addEventListener("abort", done, { once: true });
    });
  }

  // Puts values into the address's query without another entry in the history, as filters do; null takes one out.
  remember(values) {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(values)) {
      if (value === null || value === "" || value === false) url.searchParams.delete(name);
      else url.searchParams.set(name, String(value));
    }
    history.replaceState(null, "", url);
  }

  go(address) {
    this.router.go(address);
  }

  // Shows this page anew.
  again() {
    this.router.go(location.pathname + location.search, { replace: true });
  }
}
