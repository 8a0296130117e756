// The console's start and its router: an address is a page, links and the back button go between them.

import * as api from "./api.js";
import { element } from "./dom.js";
import { field, onSubmit } from "./forms.js";
import { failureOf, say } from "./status.js";
import { View } from "./view.js";
import { VIEWS } from "./views.js";

const main = document.getElementById("main");
let session = null;
let open = null;

const router = { go, logInAgain };

function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  return show();
}

// Shows the page of the present address. isFirst: nobody has read anything yet, so the focus stays where it is.
async function show({ isFirst = false } = {}) {
  open?.left.abort();
  const { pathname, search } = location;
  const [found, params] = match(pathname);
  const view = new View({ main, entry: found, params, query: new URLSearchParams(search), session, router });
  open = view;
  markNavigation(pathname);
  if (session.needs_login && !session.is_logged_in) return showLogin(view);
  if (!found) return view.show("There is no such page", element("p", {}, element("a", { href: "/" }, "To the overview")));
  try {
    const module = await loaded(found.module);
    if (view.signal.aborted) return undefined;
    await module.show(view);
  } catch (error) {
    view.fail(error);
    if (error.errorName === "NETWORK_EXCEPTION") reloadWhenBack(view);
  }
  if (!isFirst && open === view && (document.activeElement === document.body || !document.activeElement)) {
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
  return undefined;
}

async function loaded(module) {
  try {
    return await import(module);
  } catch (error) {
    if (error instanceof SyntaxError) throw error;
    throw new api.ApiFailure(0, "NETWORK_EXCEPTION", "the broker cannot be reached: is it running?");
  }
}

// A page that could not be shown is loaded anew when its broker is back: modules that were missing once stay missing.
async function reloadWhenBack(view) {
  while (!view.signal.aborted) {
    await view.pause(2_000);
    try {
      await view.get("/session");
    } catch {
      continue;
    }
    if (!view.signal.aborted) location.reload();
    return;
  }
}

function match(pathname) {
  for (const each of VIEWS) {
    const pattern = new RegExp(`^${each.path.replace(/:([a-z]+)/g, "(?<$1>[^/]+)")}/?$`);
    const found = pattern.exec(pathname);
    if (found) return [each, decoded(found.groups ?? {})];
  }
  return [null, {}];
}

function decoded(groups) {
  return Object.fromEntries(
    Object.entries(groups).map(([name, value]) => {
      try {
        return [name, decodeURIComponent(value)];
      } catch {
        return [name, value];
      }
    }),
  );
}

function markNavigation(pathname) {
  const links = VIEWS.filter((each) => each.navigation).map(({ path, navigation }) => {
    const isHere = path === "/" ? pathname === "/" : pathname === path || pathname.startsWith(`${path}/`);
    return element("li", {}, element("a", { href: path, "aria-current": isHere ? "page" : null }, navigation));
  });
  document.getElementById("navigation").replaceChildren(element("ul", {}, links));
}

// ---- the session

async function readSession() {
  session = await api.get("/session");
  const account = document.getElementById("account");
  const logOut = element("button", { type: "button", class: "quiet", onclick: leave }, "Log out");
  account.replaceChildren(
    ...(session.is_read_only ? [element("span", { class: "badge" }, "read-only")] : []),
    ...(session.user ? [element("span", {}, session.user), logOut] : []),
  );
}

async function leave() {
  try {
    await api.change("DELETE", "/session");
  } catch (error) {
    return say(error.message);
  }
  await readSession();
  return show();
}

async function logInAgain() {
  await readSession();
  if (session.needs_login && !session.is_logged_in) await show();
}

function showLogin(view) {
  const forms = session.logs_in_by.map((each) => (each === "token" ? tokenForm() : passwordForm()));
  for (const form of forms) {
    onSubmit(form, async (values) => {
      await api.change("POST", "/session", values);
      await readSession();
      await show();
    });
  }
  view.show("Log in", ...(forms.length ? forms : [element("p", {}, "This broker's clients log in in ways that the console does not have.")]));
  forms[0]?.elements[0].focus();
}

function passwordForm() {
  return element(
    "form",
    { class: "panel login" },
    element("p", {}, "The name and password are those with which Kafka's clients log in to this broker."),
    field({ label: "User", name: "user", required: true, autocomplete: "username", autocapitalize: "none" }),
    field({ label: "Password", name: "password", type: "password", required: true, autocomplete: "current-password" }),
    element("div", { class: "buttons" }, element("button", { type: "submit" }, "Log in")),
  );
}

function tokenForm() {
  return element(
    "form",
    { class: "panel login" },
    element("p", {}, "The broker takes tokens of OAUTHBEARER, as Kafka's clients get them. The console renews none: who logs in stays until the token ends."),
    field({ label: "Token", name: "token", type: "password", required: true, autocomplete: "off" }),
    element("div", { class: "buttons" }, element("button", { type: "submit" }, "Log in with the token")),
  );
}

// ---- the theme

function nextTheme() {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const present = document.documentElement.dataset.theme ?? (isDark ? "dark" : "light");
  return present === "dark" ? "light" : "dark";
}

function nameTheme() {
  document.getElementById("theme").textContent = nextTheme() === "dark" ? "Dark theme" : "Light theme";
}

document.getElementById("theme").addEventListener("click", () => {
  const theme = nextTheme();
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("pykbroker-theme", theme);
  } catch {
    // A browser that keeps nothing: the choice holds for this page.
  }
  nameTheme();
});
nameTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);

// ---- addresses

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || event.defaultPrevented || link.target || link.origin !== location.origin) return;
  if (link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  link.blur();
  go(link.pathname + link.search);
  scrollTo(0, 0);
});
addEventListener("popstate", () => show());
// A page that the browser puts aside, to show it again when the reader comes back, must not go on listening meanwhile.
addEventListener("pagehide", () => open?.left.abort());
addEventListener("pageshow", (event) => {
  if (event.persisted) show();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

async function begin() {
  try {
    await readSession();
  } catch (error) {
    main.replaceChildren(element("h1", {}, "The console cannot be shown"), failureOf(error));
    return;
  }
  await show({ isFirst: true });
}

begin();
