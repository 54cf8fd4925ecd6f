// The state that the program sends, what a search finds in it, and which colour a holder has.

import { isTyped } from "./words.js";

export const nodeKey = (node) => `${node.servedBy}/${node.name}`;

export class Cluster {
  nodes = new Map();
  sections = {};

  // Takes in everything. Returns all keys.
  replace({ nodes, ...sections }) {
    this.nodes = new Map(nodes.map((node) => [nodeKey(node), node]));
    this.sections = sections;
    return [...this.nodes.keys()];
  }

  // Takes in what has changed. Returns the keys of nodes that did, also of those that are gone.
  change({ nodes = [], gone = [], ...sections }) {
    for (const key of gone) this.nodes.delete(key);
    for (const node of nodes) this.nodes.set(nodeKey(node), node);
    Object.assign(this.sections, sections);
    return [...gone, ...nodes.map(nodeKey)];
  }

  // Nodes in their order.
  keys() {
    return [...this.nodes.keys()].sort((one, other) => {
      const [a, b] = [this.nodes.get(one).name, this.nodes.get(other).name];
      return a < b ? -1 : a > b ? 1 : one < other ? -1 : 1;
    });
  }
}

export const isFree = (card) => !card.mode && !card.problems.length;

// Which cards of the node a search is for: all of its words have to match the node or the card.
export function matching(node, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const name = node.name.toLowerCase();
  const rest = words.filter((each) => !name.includes(each));
  return node.cards.filter((card) => rest.every((each) => isMatch(card, each)));
}

function isMatch(card, typed) {
  if (isTyped(typed, "free")) return isFree(card);
  if (isTyped(typed, "unhealthy")) return card.problems.length > 0;
  return textsOf(card).some((text) => text.toLowerCase().includes(typed));
}

function* holdersTexts(card) {
  for (const holder of card.holders) {
    yield holder.claim;
    for (const pod of holder.pods) yield `${pod.namespace}/${pod.name}`;
  }
}

const textsOf = (card) => [card.model, card.address, card.mode, ...card.problems, ...holdersTexts(card)];

const HUES = [255, 150, 55, 320, 205, 25, 285, 115, 350, 178, 85, 230];

// Colours by name: the same at each visit, and different as long as there are colours left.
export class Colours {
  by = "namespace";
  #hues = new Map();
  #taken = new Map();

  choose(by) {
    this.by = by;
    this.#hues.clear();
    this.#taken.clear();
  }

  // Names that were there earlier keep their colours.
  prepare(nodes) {
    const names = new Set();
    for (const node of nodes)
      for (const card of node.cards) for (const holder of card.holders) names.add(this.nameOf(holder));
    for (const name of [...names].sort()) this.hue(name);
  }

  // By what the holder is coloured.
  nameOf(holder) {
    const pod = holder.pods[0];
    const namespace = pod?.namespace || holder.claim.split("/")[0];
    if (this.by === "namespace") return namespace;
    return pod ? `${pod.namespace}/${pod.name || pod.uid}` : holder.claim;
  }

  hue(name) {
    if (!this.#hues.has(name)) this.#hues.set(name, this.#pick(name));
    return this.#hues.get(name);
  }

  names() {
    return [...this.#hues.keys()].sort();
  }

  #pick(name) {
    const start = hash(name) % HUES.length;
    const order = HUES.map((_, step) => HUES[(start + step) % HUES.length]);
    const least = Math.min(...order.map((hue) => this.#taken.get(hue) ?? 0));
    const chosen = order.find((hue) => (this.#taken.get(hue) ?? 0) === least);
    this.#taken.set(chosen, least + 1);
    return chosen;
  }
}

function hash(text) {
  let found = 2166136261;
  for (const each of text) found = Math.imul(found ^ each.codePointAt(0), 16777619) >>> 0;
  return found;
}
