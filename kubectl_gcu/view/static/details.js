// What a card is and who holds it, beside the card that the pointer or the keyboard is on.

import { amount, health, modeName, podName, usage } from "./cards.js";
import { age, element, word } from "./words.js";

const GAP = 8;

export class Details {
  #box;
  #card = null;

  constructor(box) {
    this.#box = box;
  }

  // `block` is the card's element.
  show(node, card, block) {
    this.#card = block;
    this.#box.replaceChildren(...content(node, card));
    this.#box.hidden = false;
    const at = block.getBoundingClientRect();
    const own = this.#box.getBoundingClientRect();
    const left = Math.max(GAP, Math.min(at.left, innerWidth - own.width - GAP));
    const below = at.bottom + GAP;
    const top = below + own.height > innerHeight ? Math.max(GAP, at.top - own.height - GAP) : below;
    this.#box.style.setProperty("left", `${left}px`);
    this.#box.style.setProperty("top", `${top}px`);
  }

  hide() {
    this.#card = null;
    this.#box.hidden = true;
  }

  isFor(block) {
    return this.#card === block;
  }
}

function* content(node, card) {
  yield element("p", "title", `${node.name} · ${card.address}`);
  yield table(
    [
      ["mode", [modeName(card), usage(card)].filter(Boolean).join(" · ")],
      ["health", health(card), card.problems.length ? "bad" : ""],
      ["model", card.model],
      ["memory", card.memoryMiB === null ? "" : `${card.memoryMiB} MiB`],
      ["index", card.index === null ? "" : String(card.index)],
      ["uuid", card.uuid],
    ],
  );
  yield element("p", "title", word("held"));
  if (!card.holders.length) yield element("p", "muted", word("nobody"));
  for (const holder of card.holders) yield ofHolder(holder);
}

function ofHolder(holder) {
  const made = element("div", "holder");
  made.append(element("p", "amount", amount(holder) + (holder.admin ? ` · ${word("admin")}` : "")));
  const rows = [["claim", holder.claim || word("noClaim")]];
  for (const pod of holder.pods) {
    rows.push(["pod", podName(pod)], ["containers", containers(pod)], ["age", age(pod.created)]);
  }
  if (!holder.pods.length) rows.push(["pod", word("unused")]);
  made.append(table(rows));
  return made;
}

function containers(pod) {
  const named = (name) => (pod.ended.includes(name) ? word("containerEnded", name) : name);
  return pod.containers.map(named).join(", ");
}

function table(rows) {
  const made = element("dl");
  for (const [name, text, className = ""] of rows) {
    if (text) made.append(element("dt", "", word(name)), element("dd", className, text));
  }
  return made;
}
