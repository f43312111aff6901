// The panel beside the graph: what is known of a passage, an entity or a fact, with the exact words marked.

const MOST = 8; // rows of a list before the button that shows the rest

/** A button that opens something: {node}, {link} or {passage}. */
function opener(target, text, name = "open") {
  return own(text, "button", { type: "button", class: name, click: () => show(target, { read: true }) });
}

const nodeButton = (i) => opener({ node: i }, nodes[i].name, `open ${nodes[i].kind}`);
const passageButton = (id) => opener(nodeOf.has(id) ? { node: nodeOf.get(id) } : { passage: id }, passageName(id), "open passage");
const badge = (text, name = "") => el("span", { class: `badge ${name}` }, text);

/** A text in pieces, those within the spans marked. Spans count characters, not the units of JavaScript. */
function marked(text, spans) {
  const letters = Array.from(text);
  const cuts = [...new Set([0, letters.length, ...spans.flatMap(([start, end]) => [start, end])])].sort((a, b) => a - b);
  const pieces = cuts.slice(1).map((end, k) => {
    const start = cuts[k];
    const inside = spans.filter(([s, e]) => s <= start && end <= e).map((span) => span[2]);
    const piece = letters.slice(start, end).join("");
    return inside.length ? el("mark", { class: [...new Set(inside)].join(" ") }, piece) : piece;
  });
  return el("p", { class: "text", dir: "auto" }, pieces);
}

/** Spans of the names of some entities in a passage. */
function nameSpans(id, entities) {
  const node = nodeOf.get(id);
  return (node == null ? [] : around[node])
    .filter((i) => entities.includes(links[i].target))
    .flatMap((i) => (links[i].spans ?? []).map(([start, end]) => [start, end, "name"]));
}

const sentenceSpans = (id, list) => list.flatMap((i) => (facts[i].spans[id] ? [[...facts[i].spans[id], "sentence"]] : []));

/** What a list shows first, and a button for the rest. */
function few(rows, make, name) {
  const list = el("ul", { class: name }, rows.slice(0, MOST).map(make));
  if (rows.length <= MOST) return list;
  const more = el("button", { type: "button", class: "more" }, `Show all ${number(rows.length)}`);
  more.addEventListener("click", () => {
    const made = rows.slice(MOST).map(make);
    list.append(...made);
    more.remove();
    made[0].querySelector("button")?.focus();
  });
  return el("div", {}, list, more);
}

const arrowRow = (link) => [nodeButton(link.source), el("span", { class: "relation" }, ` ${arrow(link)} `), nodeButton(link.target)];

/** One sentence with all arrows that it stands for, the best first. */
function factRow(list) {
  const link = links[list[0]];
  return el(
    "li",
    {},
    list.map((i) => el("div", { class: "arrow" }, arrowRow(links[i]))),
    opener({ link: list[0] }, `“${facts[link.fact].text}”`, "open quote"),
    el("small", {}, `${score(link.score)}${link.kept ? "" : ", cut"}`),
  );
}

/** Links of facts, best first, those of one sentence together. */
function bySentence(list) {
  const groups = new Map();
  for (const i of list) groups.set(links[i].fact, [...(groups.get(links[i].fact) ?? []), i]);
  return [...groups.values()];
}

function heading(name, badges) {
  return [own(name, "h2", { id: "detail-title", tabindex: "-1" }), el("p", { class: "badges" }, badges)];
}

/** The evidence path to a passage, step by step. */
function pathSteps(id) {
  const steps = pathOf(id);
  const chain = pathNodes(id);
  if (!steps.length) return el("p", { class: "none" }, "No path: words or vectors alone brought it in.");
  return el(
    "ol",
    { class: "path" },
    el("li", { class: "start" }, nodeButton(chain[0]), badge("seed", "seed")),
    steps.map(([i, forward], k) => {
      const link = links[i];
      const there = { mention: "is named in", subject: "is the subject of", synonym: "is the same as" }[link.kind];
      const words = link.kind === "fact" ? arrow(link, forward) : forward ? relationOf(link) : there; // a passage is a source
      return el(
        "li",
        {},
        el("span", { class: "relation" }, words),
        link.kind === "fact" && opener({ link: i }, `“${facts[link.fact].text}”`, "open quote"),
        el("span", { class: "end" }, nodeButton(chain[k + 1])),
      );
    }),
  );
}

function passageDetail(id) {
  const hit = rankOf.get(id);
  const node = nodes[nodeOf.get(id)];
  const steps = pathOf(id).map(([i]) => links[i]);
  const stated = steps.flatMap((link) => (link.kind === "fact" ? [link.fact] : []));
  const own = best((factsOf.get(id) ?? []).flatMap((fact) => ofFact[fact]));
  const strongest = own.length && links[own[0]].kept && !stated.some((fact) => facts[fact].spans[id]) ? [links[own[0]].fact] : [];
  const spans = [...sentenceSpans(id, [...stated, ...strongest]), ...nameSpans(id, pathNodes(id))];
  const why = strongest.length ? "its strongest fact" : "the path’s sentence";
  return [
    heading(passageName(id), [
      badge("passage", "passage"),
      hit && badge(`rank ${hit.rank}`),
      node ? badge(`${data.score_unit} ${score(node.score)}`) : badge("not a candidate", "cut"),
      node && !node.kept && badge("cut", "cut"),
      badge(id, "id"),
    ]),
    hit && [el("h3", {}, "How the search came here"), pathSteps(id)],
    el("h3", {}, "Text"),
    marked(texts[id].text, spans),
    spans.length > 0 && el("p", { class: "note" }, `Marked: ${sentenceSpans(id, [...stated, ...strongest]).length ? `${why}, and ` : ""}the names on the path.`),
    own.length > 0 && [el("h3", {}, `Facts that it states (${number(own.length)})`), few(bySentence(own), factRow, "facts")],
  ];
}

function entityDetail(i) {
  const node = nodes[i];
  const own_ = best(around[i]);
  const of = (kind) => own_.filter((l) => links[l].kind === kind);
  const other = (l) => (links[l].source === i ? links[l].target : links[l].source);
  const named = [...of("subject"), ...of("mention")].sort((a, b) => nodes[links[b].source].score - nodes[links[a].source].score);
  const same = of("synonym");
  return [
    heading(node.name, [
      badge(node.type || "entity", "entity"),
      badge(hopName(node), node.hop === 0 ? "seed" : ""),
      badge(`${data.score_unit} ${score(node.score)}`),
      !node.kept && badge("cut", "cut"),
    ]),
    node.description && own(node.description, "p"),
    el("h3", {}, `Facts (${number(of("fact").length)})`),
    of("fact").length ? few(bySentence(of("fact")), factRow, "facts") : el("p", { class: "none" }, "None among the candidates."),
    named.length > 0 && [
      el("h3", {}, `Passages that name it (${number(named.length)})`),
      few(named, (l) => el("li", {}, nodeButton(links[l].source), el("small", {}, `${score(nodes[links[l].source].score)}${nodes[links[l].source].kept ? "" : ", cut"}`)), "names"),
    ],
    same.length > 0 && [el("h3", {}, "Near-equal names"), few(same, (l) => el("li", {}, nodeButton(other(l))), "names")],
  ];
}

function linkDetail(i) {
  const link = links[i];
  const fact = facts[link.fact];
  const here = fact ? fact.passages.filter((id) => texts[id]) : [nodes[link.source].id].filter((id) => texts[id]);
  return [
    heading(`${nodes[link.source].name} → ${nodes[link.target].name}`, [
      badge(link.kind === "fact" ? "fact" : link.kind),
      link.relation && badge(link.relation),
      link.score != null && badge(`${data.score_unit} ${score(link.score)}`),
      !link.kept && badge("cut", "cut"),
    ]),
    el("p", { class: "arrow" }, arrowRow(link)),
    fact && own(`“${fact.text}”`, "blockquote"),
    here.map((id) => [
      el("h3", {}, "Stated in ", passageButton(id)),
      marked(texts[id].text, [...(fact ? sentenceSpans(id, [link.fact]) : []), ...nameSpans(id, [link.source, link.target])]),
    ]),
    fact && fact.passages.length > here.length && el("p", { class: "note" }, `Also in ${count(fact.passages.length - here.length, "passage")} outside this graph.`),
  ];
}

function detailOf(target) {
  if (target.link != null) return linkDetail(target.link);
  if (target.node == null) return passageDetail(target.passage);
  return nodes[target.node].kind === "passage" ? passageDetail(nodes[target.node].id) : entityDetail(target.node);
}
