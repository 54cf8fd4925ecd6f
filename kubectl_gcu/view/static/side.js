// Totals at the top; waiting pods and their groups at the side, each with what `explain` says.

import { age, element, word } from "./words.js";

const MODES = ["whole", "shared", "drs"];

export function drawTotals(totals) {
  const unusable = totals.cards - totals.free - totals.whole - totals.shared - totals.drs;
  const bar = element("div", "bar-of-modes");
  for (const [name, count] of [...MODES.map((mode) => [mode, totals[mode]]), ["unusable", unusable], ["free", totals.free]]) {
    if (!count) continue;
    const part = element("span", name);
    part.style.setProperty("--units", count);
    part.title = `${count} ${word(name)}`;
    bar.append(part);
  }
  const { slices, sizes } = totals;
  const figures = element("dl", "figures");
  figures.append(
    figure("cards", totals.cards),
    figure("free", totals.free),
    figure("whole", totals.whole),
    figure("shared", totals.shared, slices.total ? word("ofSlices", slices.used, slices.total) : ""),
    figure("drs", totals.drs, sizes.total ? word("ofSizes", sizes.used, sizes.total) : ""),
    figure("problems", totals.problems),
  );
  return [figures, bar];
}

function figure(name, count, more = "") {
  const made = element("div", `figure ${name}`);
  if (name === "problems" && count) made.classList.add("bad");
  made.append(element("dd", "count", count), element("dt", "", word(name)));
  if (more) made.append(element("dd", "more", more));
  return made;
}

export function drawLargest(largest) {
  const list = element("ul");
  for (const mode of MODES) {
    const { amount, node } = largest[mode];
    const name = mode[0].toUpperCase() + mode.slice(1);
    const item = element("li", amount ? mode : `${mode} none`);
    item.append(element("strong", "", amount ? word(`largest${name}`, amount) : word(`none${name}`)));
    if (node) item.append(element("span", "muted", word("on", node)));
    list.append(item);
  }
  return [element("h2", "", word("largest")), list];
}

// The list of waiting pods. `explain(pod)` returns a promise of what `kubectl gcu explain` says.
export class Waiting {
  #box;
  #explain;
  #open = new Map();

  constructor(box, explain) {
    this.#box = box;
    this.#explain = explain;
  }

  draw(pods, groups) {
    const focused = document.activeElement?.dataset?.uid;
    this.#forget(new Set(pods.map((pod) => pod.uid)));
    const parts = groups.map((group) => this.#group(group, pods.filter((pod) => pod.group === group.name)));
    const alone = element("ul");
    const named = new Set(groups.map((group) => group.name));
    alone.append(...pods.filter((pod) => !named.has(pod.group)).map((pod) => this.#pod(pod)));
    this.#box.replaceChildren(...parts, alone);
    if (!pods.length) this.#box.append(element("p", "muted", word("noWaiting")));
    if (focused) this.#box.querySelector(`button[data-uid="${CSS.escape(focused)}"]`)?.focus();
  }

  // What was asked about pods that wait no longer.
  #forget(uids) {
    for (const uid of this.#open.keys()) if (!uids.has(uid)) this.#open.delete(uid);
  }

  #group(group, pods) {
    const made = element("section", "group");
    const head = element("h3");
    const button = element("button", "", `${word("group")} ${group.name}`);
    button.type = "button";
    const list = element("ul");
    list.append(...pods.map((pod) => this.#pod(pod)));
    // What its most urgent pod waits for, the group waits for.
    button.addEventListener("click", () => list.querySelector("button")?.click());
    head.append(button);
    made.append(head, english(element("p", "muted", group.progress)), list);
    return made;
  }

  #pod(pod) {
    const item = element("li", "waiting");
    const button = element("button");
    button.type = "button";
    button.dataset.uid = pod.uid;
    const line = element("span", "line");
    line.append(element("span", "pod-name", `${pod.namespace}/${pod.name}`), element("time", "muted", age(pod.created)));
    button.append(line, english(element("span", "asks", pod.asks || "–")));
    button.append(element("span", "muted", pod.node ? word("onNode", pod.node) : `${word("next")}: ${pod.next}`));
    const answer = element("div", "answer");
    answer.id = `answer-${pod.uid}`;
    button.setAttribute("aria-controls", answer.id);
    button.addEventListener("click", () => this.#toggle(pod, button, answer));
    item.append(button, answer);
    this.#show(pod, button, answer);
    return item;
  }

  #toggle(pod, button, answer) {
    if (this.#open.has(pod.uid)) {
      this.#open.delete(pod.uid);
      this.#show(pod, button, answer);
      return;
    }
    this.#open.set(pod.uid, null);
    this.#show(pod, button, answer);
    this.#explain(pod).then((said) => {
      if (!this.#open.has(pod.uid)) return;
      this.#open.set(pod.uid, said);
      const shown = document.getElementById(answer.id);
      if (shown) this.#show(pod, shown.previousElementSibling, shown);
    });
  }

  #show(pod, button, answer) {
    const isOpen = this.#open.has(pod.uid);
    button.setAttribute("aria-expanded", String(isOpen));
    answer.hidden = !isOpen;
    if (!isOpen) return;
    const said = this.#open.get(pod.uid);
    answer.replaceChildren(said ? statements(said) : element("p", "muted", word("explaining")));
  }
}

function statements({ statements: said, error }) {
  if (error) return english(element("p", "bad", error));
  const made = english(element("dl"));
  for (const [label, text] of said) made.append(element("dt", "", label), element("dd", "", text));
  return made;
}

function english(made) {
  made.lang = "en";
  return made;
}
