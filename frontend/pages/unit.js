// One unit in any state: its words, its history, and what can be done with it now.

import { api, Refusal } from "../api.js";
import { fill, focusOn, h } from "../dom.js";
import { many } from "../format.js";
import { badge, busy, failed, field, problem, spinner, unitLink, when } from "../parts/bits.js";
import { flags, revisionList, similar, unitBody } from "../parts/card.js";
import { confirm, open } from "../parts/dialog.js";
import { edit } from "../parts/edit.js";
import { to } from "../router.js";

export default function unit(shell, { path: [, id] }) {
  const note = h("div", { class: "slot", role: "status" });
  const place = h("div");
  const view = h("div", {}, h("h1", { class: "unseen" }, "Unit"), note, place);
  const say = (text, kind = "good") => fill(note, h("div", { class: `note ${kind}` }, text));

  async function show() {
    if (!place.firstChild) fill(place, spinner());
    try {
      const [item, history] = await Promise.all([api.unit(id), api.history(id)]);
      draw(item, history);
    } catch (fault) {
      const missing = fault instanceof Refusal && fault.status === 404;
      fill(place, missing ? h("p", { class: "note mild" }, "There is no unit of this id. ", h("a", { href: to("units") }, "All units")) : failed(fault, show));
    }
  }

  function draw(item, history) {
    const replaced = item.knowledge_unit.superseded_by;
    if (view.isConnected) document.title = `${item.knowledge_unit.insight.summary} · cq`;
    fill(
      place,
      h(
        "article",
        { class: "card", "aria-labelledby": "unit-summary" },
        h("p", { class: "row" }, badge(item.status), item.disputed && badge("disputed"), item.stale && badge("stale"), h("code", { class: "quiet" }, id)),
        replaced && h("p", { class: "note mild" }, "Superseded by ", unitLink(replaced, replaced), "."),
        unitBody({ ...item, flags: [] }),
        history.flags.length > 0 && flags(history.flags),
        h("div", { class: "row wrap" }, actions(item)),
      ),
      similar(id),
      history.revisions.length > 1 && h("section", {}, h("h2", {}, "Edits"), revisionList(history.revisions)),
      h("section", {}, h("h2", {}, "History"), timeline(history.events), votes(history.votes), use(history.use)),
    );
  }

  /** What the unit's state allows. */
  function actions(item) {
    const line = problem();
    const button = (label, work, kind = "") => {
      const node = h("button", { type: "button", class: kind, onclick: () => busy(node, line, () => work()) }, label);
      return node;
    };
    const done = async (text, kind) => {
      say(text, kind);
      shell.refresh();
      await show();
      focusOn(place.querySelector("#unit-summary") || place.firstElementChild);
    };
    const asked = (label, past, text, work, danger = true) =>
      button(label, async () => {
        let said;
        const once = async (reason) => {
          said = await outcome(past, () => work(id, reason));
        };
        if (await confirm(`${label} this unit?`, text, label, once, { reason: true, danger })) await done(...said);
      });
    const approve = (label, past, tier, kind) =>
      button(label, async () => done(...(await outcome(past, () => api.approve(id, tier, item.revision)))), kind);
    const change = button("Edit", async () => {
      if (await edit(item)) return done("Saved.");
      const now = await api.unit(id);
      const same = now.revision === item.revision && now.status === item.status;
      return same || done("It was changed meanwhile.", "mild");
    });
    const again = (text) => asked("Reopen", "Reopened.", text, api.reopen, false);
    const offered = {
      pending: () => [
        approve("Approve", "Approved.", "private", "main"),
        approve("Publish", "Approved and published.", "public"),
        asked("Reject", "Rejected.", "Its author sees the reason.", (_, reason) => api.reject(id, reason, item.revision)),
        change,
      ],
      approved: () => [
        (item.disputed || item.stale) && asked("Keep", "Kept.", "It is right as it stands.", api.keep, false),
        item.disputed && change,
        asked("Retire", "Retired.", "Agents do not find it any more.", api.retire),
        button("Supersede", () => supersede(id, done)),
        again("It waits for a decision again, and agents do not find it meanwhile."),
      ],
      rejected: () => [again("It waits for a decision again.")],
      retired: () => [again("It waits for a decision again.")],
      superseded: () => [],
    }[item.status];
    return [offered(), line];
  }

  show();
  return { title: "Unit", view };
}

/** [what to say, how] of a step that was taken, or that somebody else was first. */
async function outcome(past, work) {
  try {
    await work();
    return [past, "good"];
  } catch (fault) {
    if (!(fault instanceof Refusal && fault.status === 409)) throw fault;
    return [`${fault.detail}.`, "mild"];
  }
}

/** Ask which unit takes this one's place. */
function supersede(id, done) {
  return open("Supersede this unit", (close) => {
    const line = problem();
    const input = h("input", { required: true, autofocus: true, autocomplete: "off", spellcheck: "false", pattern: "ku_[0-9a-f]{32}", title: "ku_ and 32 digits or letters from a to f", placeholder: "ku_…" });
    const reason = h("textarea", { rows: 2, maxlength: 1000 });
    const button = h("button", { type: "submit", class: "danger" }, "Supersede");
    const near = h("div");
    api.similar(id).then(({ data }) => {
      const approved = data.filter((item) => item.status === "approved");
      if (!approved.length) return;
      near.className = "field";
      fill(
        near,
        h("p", { class: "quiet" }, "Approved and much like it:"),
        h(
          "p",
          { class: "row wrap" },
          approved.map(({ knowledge_unit: unit }) =>
            h("button", { type: "button", class: "plain", dir: "auto", onclick: () => { input.value = unit.id; input.focus(); } }, unit.insight.summary),
          ),
        ),
      );
    }, () => {});
    return h(
      "form",
      {
        onsubmit(event) {
          event.preventDefault();
          busy(button, line, async () => {
            const said = await outcome("Superseded.", () => api.supersede(id, input.value.trim(), reason.value.trim()));
            close(true);
            await done(...said);
          });
        },
      },
      h("p", {}, "The other unit takes its place and its confirmations; agents find the other one."),
      field("Id of the approved unit that replaces it", input),
      near,
      field("Reason (optional)", reason),
      line,
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => close(null) }, "Cancel"), button),
    );
  });
}

const CHANNELS = { page: "in this page", token: "by a program", key: "by an agent's key", command: "on the command line" };

function timeline(events) {
  return h(
    "ol",
    { class: "timeline" },
    events.map((event) =>
      h(
        "li",
        {},
        h("strong", {}, event.type),
        event.type === "approved" && event.tier === "public" && " and published",
        event.superseded_by && [" by ", unitLink(event.superseded_by, event.superseded_by)],
        event.superseded_by ? ", decided by " : " by ",
        h("bdi", {}, event.by),
        ", ",
        when(event.at),
        h("span", { class: "quiet" }, ` ${CHANNELS[event.channel] || event.channel}${event.self_reviewed ? ", their own proposal" : ""}`),
        event.reason && h("p", { class: "prose", dir: "auto" }, event.reason),
      ),
    ),
  );
}

const use = ({ served, last }) =>
  h("p", { class: "quiet" }, served ? `Served ${many(served, "time")}, last on ${last}.` : "No agent was served it yet.");

function votes(counts) {
  const told = Object.entries(counts).map(([kind, count]) => `${kind} ${count}`);
  return told.length > 0 && h("p", { class: "quiet" }, `Votes: ${told.join(", ")}.`);
}
