// The shell: who is signed in, what they may open, and the page that the address names.

import { api, maySignIn, network, Refusal } from "./api.js";
import { announce, fill, focusOn, h } from "./dom.js";
import { failed, spinner } from "./parts/bits.js";
import { mark, moon, sun } from "./parts/mark.js";
import { go, here, to } from "./router.js";

const ROLES = ["contributor", "reviewer", "admin"];
const EVERY = 15000;

// address: [module, role it needs, title in the navigation]
const PAGES = {
  __proto__: null,
  review: ["review", "reviewer", "Review"],
  units: ["units", "reviewer", "Units"],
  attention: ["attention", "reviewer", "Another look"],
  dashboard: ["dashboard", "reviewer", "Dashboard"],
  gaps: ["gaps", "reviewer", "Gaps"],
  proposals: ["proposals", "contributor", "My proposals"],
  keys: ["keys", "contributor", "API keys"],
  users: ["users", "admin", "Users"],
  account: ["account", "contributor", null],
};

class Shell {
  constructor() {
    this.me = null;
    this.page = null;
    this.turn = 0;
    this.channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("cq") : null;
    this.counts = { review: null, attention: null };
    this.header = h("header", { class: "top" });
    this.main = h("main", { id: "main", tabindex: -1 });
    this.status = h("div", { class: "network", role: "status" });
    document.body.append(
      h("a", { class: "jump", href: "#main", onclick: (event) => { event.preventDefault(); this.main.focus(); } }, "Skip to content"),
      this.header,
      this.status,
      this.main,
      h("div", { id: "announcer", class: "unseen", "aria-live": "polite" }),
    );
    addEventListener("hashchange", () => this.render());
    addEventListener("cq-theme", () => this.themed());
    document.addEventListener("visibilitychange", () => this.refresh());
    setInterval(() => this.refresh(), EVERY);
    this.channel?.addEventListener("message", ({ data }) => (data === "out" ? this.left() : this.joined()));
    network.addEventListener("away", () => this.tell("The server is not reached. Trying again…", "bad"));
    network.addEventListener("back", () => { this.tell(""); announce("The server is back."); this.refresh(); });
    network.addEventListener("slow", () => this.status.textContent || this.tell("The server is slow to answer…", "mild"));
    network.addEventListener("quick", () => this.status.dataset.kind === "mild" && this.tell(""));
    network.addEventListener("ended", () => this.ended());
  }

  async start() {
    fill(this.main, spinner());
    if (!maySignIn()) return this.render();
    try {
      this.me = await api.me();
    } catch (fault) {
      if (!(fault instanceof Refusal && fault.status === 401)) {
        // Not reached is not signed out.
        fill(this.main, failed(fault, () => this.start()));
        return undefined;
      }
      return this.signInAgain();
    }
    this.bar();
    this.refresh();
    return this.render();
  }

  may(role) {
    return this.me !== null && ROLES.indexOf(this.me.role) >= ROLES.indexOf(role);
  }

  /** Signed in here: to where one wanted to go. */
  async signedIn() {
    this.me = await api.me();
    this.channel?.postMessage("in");
    this.bar();
    this.refresh();
    return this.render();
  }

  /** Signed in in another tab, perhaps as somebody else than here. */
  async joined() {
    let me;
    try {
      me = await api.me();
    } catch {
      return;
    }
    if (this.me && me.username === this.me.username && me.role === this.me.role) return;
    this.me = me;
    this.bar();
    this.refresh();
    this.render();
  }

  home() {
    return to(this.may("reviewer") ? "review" : "proposals");
  }

  /** The session is over: sign in again and come back to where one was. */
  ended() {
    if (!this.me) return;
    this.me = null;
    this.bar();
    this.signInAgain();
  }

  signInAgain() {
    if (here().path[0] === "login") this.render();
    else go(to("login", { next: location.hash, why: "ended" }), { replace: true });
  }

  /** Signed out in another tab. */
  left() {
    if (!this.me) return;
    this.me = null;
    this.bar();
    go(to("login"));
  }

  async signOut() {
    try {
      await api.signOut();
    } catch (fault) {
      // Where the server is away, the line says that already.
      if (fault instanceof Refusal) this.tell(fault.message, "told");
      return;
    }
    this.channel?.postMessage("out");
    this.left();
  }

  async render() {
    const turn = ++this.turn;
    const { path, query } = here();
    const name = path[0] || "";
    this.page?.leave?.();
    this.page = null;
    if (this.status.dataset.kind === "told") this.tell("");
    if (!this.me) {
      if (name !== "login") {
        const next = name ? location.hash : undefined;
        go(to("login", { next }), { replace: true });
        return;
      }
    } else if (!PAGES[name]) {
      const { next } = query;
      go(name === "login" && next?.startsWith("#/") ? next : this.home(), { replace: true });
      return;
    }
    const [file, role] = PAGES[name] || ["login", null];
    if (role && !this.may(role)) {
      this.show({ title: "Not yours", view: h("div", {}, h("h1", { tabindex: -1 }, "Not yours to open"), h("p", {}, `This page needs the role ${role}; yours is ${this.me.role}.`), h("p", {}, h("a", { href: this.home() }, "Go to your page"))) }, name);
      return;
    }
    let made;
    try {
      made = await import(`./pages/${name === "units" && path[1] ? "unit" : file}.js`);
    } catch {
      // The server tells why, or is away; a module that failed to load is not asked for twice.
      const fault = await api.me().then(() => new Error("This page could not be loaded."), (refusal) => refusal);
      if (turn === this.turn) fill(this.main, failed(fault, () => location.reload()));
      return;
    }
    if (turn !== this.turn) return;
    this.show(made.default(this, { path, query }), name);
  }

  show(page, name) {
    this.page = page;
    document.title = `${page.title} · cq`;
    fill(this.main, page.view);
    scrollTo(0, 0);
    for (const link of this.header.querySelectorAll("nav a")) {
      if (link.dataset.page === name) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "center" });
      } else link.removeAttribute("aria-current");
    }
    // A screen reader reads the heading that is focused; the review page focuses what it shows.
    const focus = this.main.querySelector("[autofocus]");
    if (focus) focus.focus();
    else if (name !== "review") focusOn(this.main.querySelector("h1") || this.main);
  }

  /** The bar at the top: where one can go, what waits there, the theme and oneself. */
  bar() {
    this.themeButton = h("button", { type: "button", class: "icon", onclick: () => cqTheme.toggle() });
    this.themed();
    document.body.classList.toggle("out", !this.me);
    if (!this.me) {
      fill(this.header, h("span"), this.themeButton);
      return;
    }
    const links = Object.entries(PAGES)
      .filter(([, [, role, title]]) => title && this.may(role))
      .map(([name, [, , title]]) => h("a", { href: to(name), "data-page": name }, title, name in this.counts && h("span", { class: "count", hidden: true })));
    const menu = h(
      "div",
      { id: "menu", popover: "auto", class: "menu" },
      h("a", { href: to("account"), onclick: () => menu.hidePopover() }, "Account"),
      h("a", { href: "api/docs" }, "API document"),
      h("button", { type: "button", onclick: () => this.signOut() }, "Sign out"),
    );
    const person = h("button", { type: "button", class: "person", popovertarget: "menu", "aria-expanded": "false" }, h("bdi", {}, this.me.username));
    menu.addEventListener("toggle", (event) => person.setAttribute("aria-expanded", String(event.newState === "open")));
    fill(
      this.header,
      h("a", { class: "brand", href: this.home(), "aria-label": "cq, start" }, mark()),
      h("nav", { "aria-label": "Pages" }, links),
      h("div", { class: "row" }, this.themeButton, person, menu),
    );
  }

  themed() {
    if (!this.themeButton) return;
    const label = cqTheme.dark() ? "Switch to light" : "Switch to dark";
    this.themeButton.setAttribute("aria-label", label);
    this.themeButton.title = label;
    fill(this.themeButton, cqTheme.dark() ? sun() : moon());
  }

  tell(text, kind = "") {
    this.status.dataset.kind = kind;
    this.status.textContent = text;
  }

  pending(count) {
    this.counted("review", count);
  }

  looks(count) {
    this.counted("attention", count);
  }

  counted(name, count) {
    const badge = this.header.querySelector(`[data-page=${name}] .count`);
    if (!badge) return;
    badge.hidden = !count;
    fill(badge, count > 0 && [count > 999 ? "999+" : count, h("span", { class: "unseen" }, " waiting")]);
  }

  /** What waits, asked for while somebody looks; a page that asks by itself is left alone. */
  async refresh() {
    if (document.hidden || !this.may("reviewer")) return;
    try {
      if (!this.page?.polls) this.pending(await api.pending());
      this.looks(await api.attentionCount());
    } catch {
      // The line about the network tells it.
    }
  }
}

const shell = new Shell();
shell.bar();
shell.start();
