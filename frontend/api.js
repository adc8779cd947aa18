// The one that fetches. Sessions live in a cookie that no script reads; see SESSION for who one is.

// Below a prefix of a reverse proxy, too.
const BASE = new URL("api/v1", document.baseURI).pathname;
const PATIENCE = 20000;
const SLOW = 1500;

/** What the server refused: `status`, `detail` as one text, and for a 429 or 503 `retryAfter` in s. */
export class Refusal extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }
}

/** No answer came: the server is away, the network is, or it took too long. */
export class Away extends Error {}

/** Events: "away", "back", "slow" and "quick" (the network), "ended" (the session). */
export const network = new EventTarget();

const tell = (name) => network.dispatchEvent(new Event(name));
let away = false;
const slow = new Set();

function csrf() {
  const found = document.cookie.match(/(?:^|; )csrf_access_token=([^;]+)/);
  return found ? found[1] : null;
}

/** Whether there may be a session: without this cookie there is none, and nothing is asked. */
export const maySignIn = () => csrf() !== null;

async function call(method, path, { query, body, headers: wanted = {} } = {}) {
  const url = new URL(BASE + path, location.origin);
  for (const [name, value] of Object.entries(query || {})) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== null && each !== "") url.searchParams.append(name, each);
    }
  }
  const headers = { Accept: "application/json", ...wanted };
  if (method !== "GET") headers["X-CSRF-TOKEN"] = csrf() || "";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const waits = setTimeout(() => {
    slow.add(waits);
    tell("slow");
  }, SLOW);
  let response;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE),
      credentials: "same-origin",
    });
  } catch {
    went();
    throw new Away("The server does not answer.");
  } finally {
    clearTimeout(waits);
    if (slow.delete(waits) && slow.size === 0) tell("quick");
  }
  came();
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    if (response.ok) throw new Refusal(response.status, "The answer cannot be read.");
  }
  if (response.ok) return { answer, headers: response.headers };
  if (response.status === 401 && path !== "/auth/login") tell("ended");
  throw new Refusal(
    response.status,
    worded(answer, response.status),
    Number(response.headers.get("Retry-After")) || null,
  );
}

/** One text out of `detail`: a sentence, or a list of {loc, msg} for each field. */
function worded(answer, status) {
  const detail = answer && answer.detail;
  if (typeof detail === "string") return detail;
  if (!Array.isArray(detail)) return `The server answered ${status}.`;
  return detail
    .map(({ loc, msg }) => `${loc.filter((part) => part !== "body").join(" ")}: ${msg.replace(/^Value error, /, "")}`)
    .join("; ");
}

function went() {
  if (away) return;
  away = true;
  tell("away");
  const ask = async () => {
    try {
      const response = await fetch(`${BASE}/health`, { signal: AbortSignal.timeout(5000) });
      if (response.ok) return came();
    } catch {
      // Still away.
    }
    return setTimeout(ask, 3000);
  };
  setTimeout(ask, 2000);
}

function came() {
  if (!away) return;
  away = false;
  tell("back");
}

const get = async (path, query) => (await call("GET", path, { query })).answer;
const post = async (path, body, headers) => (await call("POST", path, { body, headers })).answer;
const patch = async (path, body) => (await call("PATCH", path, { body })).answer;
const one = (id) => `/review/${encodeURIComponent(id)}`;

export const api = {
  signIn: (username, password) => post("/auth/login", { username, password, session: true }),
  signOut: () => post("/auth/logout"),
  me: () => get("/users/me"),
  changePassword: (password, fresh) =>
    patch("/users/me", { password, new_password: fresh }),

  pending: async () => (await get("/review/queue", { limit: 0 })).total,
  queue: (cursor, limit = 20) => get("/review/queue", { limit, cursor }),
  attention: (cursor, limit = 20) => get("/review/attention", { limit, cursor }),
  attentionCount: async () => (await get("/review/attention", { limit: 0 })).total,
  gaps: (offset, limit = 20) => get("/review/gaps", { limit, offset }),
  use: (offset, limit = 20) => get("/review/use", { limit, offset }),
  unused: (offset, limit = 20) => get("/review/use", { limit, offset, never: 1 }),
  unit: (id) => get(one(id)),
  history: (id) => get(`${one(id)}/history`),
  similar: (id) => get(`${one(id)}/similar`),
  edit: (id, words) => patch(one(id), words),
  /** `revision` is the one that was read: what was edited since is not decided unseen. */
  approve: (id, tier, revision) => post(`${one(id)}/approve`, { tier, revision }),
  reject: (id, reason, revision) => post(`${one(id)}/reject`, { reason: reason || null, revision }),
  reopen: (id, reason) => post(`${one(id)}/reopen`, reason ? { reason } : {}),
  keep: (id, reason) => post(`${one(id)}/keep`, reason ? { reason } : {}),
  retire: (id, reason) => post(`${one(id)}/retire`, reason ? { reason } : {}),
  supersede: (id, replacement, reason) =>
    post(`${one(id)}/supersede`, { replacement, ...(reason ? { reason } : {}) }),
  bulk: (decision, ids, more = {}) => post("/review/bulk", { decision, ids, ...more }),
  stats: () => get("/review/stats"),
  async units(filters, cursor, limit = 50) {
    const { answer, headers } = await call("GET", "/review/units", {
      query: { ...filters, limit, cursor },
    });
    return { items: answer, next: headers.get("CQ-Next-Cursor") };
  },
  async search(q, domains) {
    const { answer, headers } = await call("GET", "/knowledge", {
      query: { q, domains, limit: 50, explain: 1 },
    });
    return { ...answer, mode: headers.get("CQ-Search") };
  },

  proposals: (cursor, limit = 20) => get("/users/me/proposals", { limit, cursor }),
  keys: async () => (await get("/users/me/api-keys")).data,
  makeKey: (key) => post("/users/me/api-keys", key),
  revokeKey: (id) => post(`/users/me/api-keys/${encodeURIComponent(id)}/revoke`),
  users: async () => (await get("/users")).data,
  makeUser: (user) => post("/users", user),
  changeUser: (name, values) => patch(`/users/${encodeURIComponent(name)}`, values),
};
