// The console's API: JSON there and back. Whatever fails is an ApiFailure with Kafka's name of the error and one line.

const WAIT_MS = 60_000;

export class ApiFailure extends Error {
  constructor(status, name, message) {
    super(message);
    this.status = status;
    this.errorName = name;
  }
}

export function get(path, query = {}, signal = undefined) {
  return request("GET", withQuery(path, query), undefined, signal);
}

// method: POST, PUT or DELETE.
export function change(method, path, body = {}, signal = undefined) {
  return request(method, `/api${path}`, body, signal);
}

// What this browser calls itself: the server bounds the live pages of each, since a browser has few connections to a host.
function browser() {
  try {
    const kept = localStorage.getItem("pykbroker-browser");
    if (kept) return kept;
    const made = [...crypto.getRandomValues(new Uint8Array(9))].map((each) => each.toString(36)).join("");
    localStorage.setItem("pykbroker-browser", made);
    return made;
  } catch {
    return null; // A browser that keeps nothing.
  }
}

// Live events, until `signal` aborts or the server ends them. handlers: functions by the names of events; `failure` gets
// an ApiFailure, also when the connection is lost, `end` nothing.
export function events(path, query, handlers, signal) {
  const asked = { ...query, browser: browser() };
  const source = new EventSource(withQuery(path, asked));
  const close = () => source.close();
  signal.addEventListener("abort", close);
  for (const [name, handler] of Object.entries(handlers)) {
    if (name === "failure") continue;
    source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  }
  source.addEventListener("end", close);
  source.addEventListener("failure", (event) => {
    close();
    const { error } = JSON.parse(event.data);
    handlers.failure?.(new ApiFailure(409, error.name, error.message));
  });
  source.onerror = () => {
    if (signal.aborted) return;
    const isRefused = source.readyState === EventSource.CLOSED;
    close();
    if (isRefused) refusal(path, asked, signal).then((error) => error && handlers.failure?.(error));
    else handlers.failure?.(new ApiFailure(0, "NETWORK_EXCEPTION", "the live stream has ended: the broker is gone or busy"));
  };
  return close;
}

// Why a stream is refused, which browsers do not tell: the same request is made once more.
async function refusal(path, query, signal) {
  const once = new AbortController();
  try {
    const response = await fetch(withQuery(path, query), { signal: AbortSignal.any([signal, once.signal]) });
    if (response.ok) return new ApiFailure(0, "NETWORK_EXCEPTION", "the live stream did not begin: load the page anew");
    await answer(response);
  } catch (error) {
    return signal.aborted ? null : error;
  } finally {
    once.abort();
  }
  return null;
}

export function withQuery(path, query) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return `/api${path}${text ? `?${text}` : ""}`;
}

async function request(method, url, body, signal) {
  const limit = AbortSignal.timeout(WAIT_MS);
  const options = { method, credentials: "same-origin", signal: signal ? AbortSignal.any([signal, limit]) : limit };
  if (method !== "GET") {
    options.headers = { "Content-Type": "application/json", "X-Console-Request": "1" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    if (limit.aborted) throw new ApiFailure(0, "REQUEST_TIMED_OUT", "the broker did not answer in time");
    throw new ApiFailure(0, "NETWORK_EXCEPTION", "the broker cannot be reached: is it running?");
  }
  return answer(response);
}

async function answer(response) {
  let value;
  try {
    value = await response.json();
  } catch {
    throw new ApiFailure(response.status, "UNKNOWN_SERVER_ERROR", `an answer of status ${response.status} is no JSON`);
  }
  if (response.ok) return value;
  const error = value?.error ?? {};
  throw new ApiFailure(response.status, error.name ?? "UNKNOWN_SERVER_ERROR", error.message ?? "no reason is given");
}
