// The data of the page, what is looked up in it, and how elements are made: text only ever becomes text nodes.

const data = JSON.parse(document.getElementById("data").textContent);
const { nodes, links, facts, paths, texts } = data.graph;
const byId = (id) => document.getElementById(id);

/** Children as one list, without those that are not there. */
const present = (children) => children.flat(Infinity).filter((child) => child != null && child !== false && child !== "");

/** An element with attributes (functions become listeners) and children (strings become text). */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...present(children));
  return made;
}

/** Text of others, kept apart from the direction of the text around it. */
const own = (text, tag = "bdi", attributes = {}) => el(tag, { dir: "auto", ...attributes }, text);

const number = (n) => n.toLocaleString("en");
const score = (s) => (Math.abs(s) >= 10 ? s.toFixed(1) : s.toFixed(3));
const milliseconds = (s) => `${(1000 * s).toFixed(s < 0.0095 ? 1 : 0)} ms`;
const count = (n, noun, many = `${noun}s`) => `${number(n)} ${n === 1 ? noun : many}`;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const narrow = matchMedia("(max-width: 719px)");

const rankOf = new Map(data.passages.map((hit) => [hit.id, hit]));
const nodeOf = new Map(nodes.flatMap((node, i) => (node.kind === "passage" ? [[node.id, i]] : [])));
const ofFact = facts.map(() => []);
const around = nodes.map(() => []);
links.forEach((link, i) => {
  around[link.source].push(i);
  around[link.target].push(i);
  if (link.kind === "fact") ofFact[link.fact].push(i);
});
const factsOf = new Map();
facts.forEach((fact, i) => fact.passages.forEach((id) => factsOf.set(id, [...(factsOf.get(id) ?? []), i])));
const best = (list) => [...list].sort((a, b) => links[b].kept - links[a].kept || links[b].score - links[a].score || a - b);

// A node's standing among those of its kind, 0 to 1: its size and its colour.
const highest = { entity: 1e-9, passage: 1e-9 };
for (const node of nodes) highest[node.kind] = Math.max(highest[node.kind], node.score);
for (const node of nodes) node.standing = Math.sqrt(Math.max(0, node.score) / highest[node.kind]);

const HOPS = ["seed", "1 hop", "2 hops"];
const hopName = (node) => (node.kind === "passage" ? "passage" : HOPS[node.hop] ?? `${node.hop} hops`);
const passageName = (id) => texts[id]?.title || id;
const clip = (text, most) => (Array.from(text).length > most ? `${Array.from(text).slice(0, most - 1).join("").trimEnd()}…` : text);
const relationOf = (link) => (link.kind === "fact" ? link.relation : { mention: "names", subject: "is about", synonym: "same as" }[link.kind]);
const arrow = (link, forward = true) => [forward ? "" : "←", relationOf(link), forward ? "→" : ""].filter(Boolean).join(" ");
const pathOf = (id) => paths[id] ?? [];
const pathNodes = (id) =>
  pathOf(id).flatMap(([i, forward], step) => {
    const ends = forward ? [links[i].source, links[i].target] : [links[i].target, links[i].source];
    return step ? [ends[1]] : ends;
  });

function describe(target) {
  if (target.link != null) {
    const link = links[target.link];
    return `${nodes[link.source].name}, ${relationOf(link) || "fact"}, ${nodes[link.target].name}`;
  }
  if (target.node == null) return passageName(target.passage);
  const node = nodes[target.node];
  const rank = rankOf.get(node.id)?.rank;
  const place = node.kind === "passage" && rank ? `passage, rank ${rank}` : hopName(node);
  return `${node.name}, ${place}, score ${score(node.score)}, ${node.kept ? "kept" : "cut"}`;
}
