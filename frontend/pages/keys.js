// API keys for agents: made, seen once, looked through, revoked.

import { api } from "../api.js";
import { announce, fill, h } from "../dom.js";
import { left, whole } from "../format.js";
import { badge, busy, failed, field, problem, spinner, split, when } from "../parts/bits.js";
import { confirm, open } from "../parts/dialog.js";

const MOST = 20;
const TTL = "[0-9]+[smhd]";
const SOON = 7 * 86400e3;

export default function keys() {
  const list = h("div", {}, spinner());
  const note = h("p", { class: "quiet" });
  const state = { keys: [], shown: "all", text: "", opened: new Set() };

  async function load() {
    try {
      state.keys = await api.keys();
      draw();
    } catch (fault) {
      fill(list, failed(fault, load));
    }
  }

  const active = () => state.keys.filter((key) => key.is_active);

  const name = h("input", { required: true, maxlength: 64, autocomplete: "off", oninput: () => check() });
  const ttl = h("input", { required: true, maxlength: 16, value: "90d", pattern: TTL, list: "ttls", autocomplete: "off", oninput: () => check() });
  const labels = h("input", { autocomplete: "off" });
  const line = problem();
  const make = h("button", { type: "submit", class: "main" }, "Make a key");

  function check() {
    const good = new RegExp(`^${TTL}$`).test(ttl.value);
    ttl.setAttribute("aria-invalid", String(!good));
    make.disabled = !name.value.trim() || !good || active().length >= MOST;
    fill(note, active().length >= MOST && `There are ${MOST} active keys, which is the most; revoke one first.`);
  }

  const form = h(
    "form",
    {
      class: "panel",
      onsubmit(event) {
        event.preventDefault();
        busy(make, line, async () => {
          const key = await api.makeKey({ name: name.value.trim(), ttl: ttl.value.trim(), labels: split(labels.value) });
          name.value = labels.value = "";
          ttl.value = "90d";
          await shownOnce(key);
          await load();
          // The button that was pressed is disabled now.
          name.focus();
        });
      },
    },
    h("h2", {}, "A new key"),
    h(
      "div",
      { class: "columns" },
      field("Name", name),
      field("Valid for", ttl, "A number and s, m, h or d."),
      field("Labels", labels, "Commas separate them."),
    ),
    h("datalist", { id: "ttls" }, ["30d", "90d", "365d", "1h", "15m"].map((value) => h("option", { value }))),
    note,
    line,
    make,
  );

  const FILTERS = {
    all: ["All", () => true],
    active: ["Active", (key) => key.is_active],
    revoked: ["Revoked", (key) => key.revoked_at !== null],
  };
  const tabs = h("div", { class: "row wrap", role: "group", "aria-label": "Which keys" });
  const search = h("input", { type: "search", "aria-label": "Search by name or label", placeholder: "Name or label", oninput: () => { state.text = search.value.toLowerCase(); rows(); } });
  const heading = h("h2", {});
  const body = h("div");

  function draw() {
    check();
    heading.textContent = `Your keys: ${active().length} of ${MOST} active`;
    fill(
      tabs,
      Object.entries(FILTERS).map(([each, [label, passes]]) =>
        h("button", { type: "button", class: "plain", "aria-pressed": String(state.shown === each), onclick: () => { state.shown = each; draw(); tabs.querySelector("[aria-pressed=true]").focus(); } }, `${label} ${state.keys.filter(passes).length}`),
      ),
    );
    rows();
    if (!body.isConnected) fill(list, heading, h("div", { class: "row wrap" }, tabs, search), body);
  }

  function rows() {
    const fits = (key) => [key.name, ...key.labels].some((text) => text.toLowerCase().includes(state.text));
    const kept = state.keys.filter(FILTERS[state.shown][1]).filter(fits);
    fill(
      body,
      kept.length
        ? h("ul", { class: "rows" }, kept.map((key) => keyRow(key, state.opened, revoke)))
        : h("p", { class: "quiet" }, state.keys.length ? "No key matches." : "There are no keys yet."),
    );
  }

  async function revoke(key) {
    const done = await confirm(`Revoke “${key.name}”?`, "An agent that uses it is shut out at once. This cannot be undone.", "Revoke", async () => {
      await api.revokeKey(key.id);
      announce("Revoked.");
      await load();
    });
    if (done) (body.querySelector(`[data-id="${key.id}"] summary`) || tabs.querySelector("[aria-pressed=true]"))?.focus();
  }

  load();
  return { title: "API keys", view: h("div", {}, h("h1", {}, "API keys"), h("p", { class: "quiet" }, "An agent proposes, confirms and flags with a key; what it does carries your name."), form, list) };
}

/** `opened` holds the ids of the rows that are open. */
function keyRow(key, opened, revoke) {
  const state = key.revoked_at ? "revoked" : key.is_expired ? "expired" : "active";
  const soon = state === "active" && new Date(key.expires_at) - Date.now() < SOON;
  const toggled = ({ target }) => (target.open ? opened.add(key.id) : opened.delete(key.id));
  return h(
    "li",
    { "data-id": key.id },
    h(
      "details",
      { open: opened.has(key.id), ontoggle: toggled },
      h(
        "summary",
        { class: "title" },
        badge(state),
        h("bdi", {}, key.name),
        h("code", { class: "quiet" }, `${key.key_prefix}…`),
        state === "active" && h("span", { class: `pill ${soon ? "soon" : ""}`, title: whole(key.expires_at) }, left(key.expires_at)),
      ),
      h(
        "dl",
        { class: "facts" },
        [
          ["Labels", key.labels.length ? key.labels.map((label) => h("bdi", { class: "label" }, label)) : "none"],
          ["Valid for", key.ttl],
          ["Made", when(key.created_at)],
          ["Ends", whole(key.expires_at)],
          ["Last used", key.last_used_at ? when(key.last_used_at) : "never"],
        ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value))),
      ),
      key.is_active && h("button", { type: "button", class: "danger", onclick: () => revoke(key) }, "Revoke"),
    ),
  );
}

/** The token, which is nowhere to be seen again. */
function shownOnce(key) {
  return open(
    `The key “${key.name}”`,
    (close) => {
      const text = h("input", { readonly: true, value: key.token, "aria-label": "The token", class: "token", onfocus: () => text.select() });
      const told = h("span", { role: "status" });
      const done = h("button", { type: "button", class: "main", disabled: true, onclick: () => close(true) }, "Done");
      const copy = async () => {
        try {
          await navigator.clipboard.writeText(key.token);
          told.textContent = "Copied.";
        } catch {
          // No clipboard on plain http, or the browser refuses it.
          text.focus();
          text.select();
          told.textContent = "Selected: copy it with your keyboard.";
        }
      };
      return h(
        "div",
        {},
        h("p", {}, "This is the only time it is shown. Give it to the agent, or keep it where secrets are kept."),
        text,
        h("p", { class: "row" }, h("button", { type: "button", autofocus: true, onclick: copy }, "Copy"), told),
        h("p", {}, h("label", {}, h("input", { type: "checkbox", onchange: (event) => { done.disabled = !event.target.checked; } }), " I have saved it")),
        h("div", { class: "row end" }, done),
      );
    },
    { firm: true },
  );
}
