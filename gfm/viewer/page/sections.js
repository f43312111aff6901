// Everything around the graph: the question, the ranking, the other retriever, the trace, and the tables.

function header() {
  byId("question").textContent = data.query.text;
  const { trace } = data;
  const total = Object.values(data.seconds).reduce((a, b) => a + b, 0);
  const facts_ = [
    ["Reached", trace.reach],
    ["Kept", `${number(trace.kept_nodes)} of ${count(trace.nodes, "node")}`],
    ["Took", milliseconds(total)],
  ];
  byId("summary").append(...facts_.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  if (trace.fallback) {
    byId("fallback").hidden = false;
    byId("fallback").textContent = `The graph told nothing about this question: passages are ranked by the fallback, ${trace.fallback}.`;
  }
}

const topScore = Math.max(1e-9, ...data.passages.map((hit) => hit.score));

function bar(share) {
  const fill = el("i", {});
  fill.style.width = `${Math.max(0, Math.min(100, 100 * share)).toFixed(1)}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, fill);
}

/** The chain of a path in one line: names, and arrows that say which way each fact points. */
function chain(id) {
  const ends = pathNodes(id);
  const words = pathOf(id).slice(0, -1).map(([i, forward]) => {
    return links[i].kind === "fact" ? ` ${arrow(links[i], forward)} ` : " · ";
  });
  return ends.slice(0, -1).flatMap((i, k) => [nodeButton(i), words[k] && el("span", { class: "relation" }, words[k])]);
}

function ranking() {
  byId("passages-title").append(el("small", {}, ` by ${data.score_unit}`));
  const row = (hit) => {
    const target = nodeOf.has(hit.id) ? { node: nodeOf.get(hit.id) } : { passage: hit.id };
    const open = el(
      "button",
      { type: "button", class: "hit", "data-passage": hit.id, click: () => show(target, { read: true }) },
      el("span", { class: "rank", "aria-hidden": "true" }, String(hit.rank)),
      own(passageName(hit.id), "span", { class: "title" }),
      el("span", { class: "score" }, score(hit.score)),
      bar(hit.score / topScore),
    );
    const path = pathOf(hit.id).length > 0 && el("p", { class: "chain" }, "via ", chain(hit.id));
    return el("li", {}, open, own(clip(hit.text, 130), "p", { class: "snippet" }), path);
  };
  byId("ranking").append(...data.passages.map(row));
  if (!data.passages.length) byId("ranking").replaceWith(el("p", { class: "none" }, "No passage was found."));
}

/** The two rankings side by side, the same passages joined by lines. */
function beside() {
  const other = data.against;
  if (!other) return;
  const [left, right] = [data.trace.retriever, other.trace.retriever ?? "the other"];
  byId("beside").hidden = false;
  byId("beside-title").textContent = `The same question, ${left} and ${right}`;
  const column = (hits, others, name, otherName) => {
    const there = new Map(others.map((hit) => [hit.id, hit.rank]));
    const row = (hit) => {
      const rank = there.get(hit.id);
      const words = rank == null ? `not among ${otherName}’s ${others.length}` : rank === hit.rank ? `same with ${otherName}` : `${rank} with ${otherName}`;
      return el("li", { class: rank == null ? "alone" : "" }, passageButton(hit.id), el("small", {}, `${score(hit.score)}, ${words}`));
    };
    return el("div", {}, el("h3", {}, name, el("small", {}, ` by ${name === left ? data.score_unit : other.score_unit}`)), el("ol", {}, hits.map(row)));
  };
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("aria-hidden", "true");
  byId("slopes").append(column(data.passages, other.passages, left, right), lines, column(other.passages, data.passages, right, left));
  new ResizeObserver(() => slopes(lines, data.passages, other.passages)).observe(byId("slopes"));
}

function slopes(svg, left, right) {
  const box = svg.getBoundingClientRect();
  const middle = (list, k) => {
    const row = list.children[k].getBoundingClientRect();
    return row.top + row.height / 2 - box.top;
  };
  const [one, two] = byId("slopes").querySelectorAll("ol");
  svg.replaceChildren();
  left.forEach((hit, k) => {
    const there = right.findIndex((other) => other.id === hit.id);
    if (there < 0 || !box.width) return;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const [a, b, w] = [middle(one, k), middle(two, there), box.width];
    line.setAttribute("d", `M0 ${a} C${w / 2} ${a} ${w / 2} ${b} ${w} ${b}`);
    svg.append(line);
  });
}

function trace() {
  const { trace: t, seconds } = data;
  const stages = Object.entries(seconds);
  const longest = Math.max(1e-9, ...stages.map(([, s]) => s));
  const bars = (rows) => el("dl", { class: "bars" }, rows.map(([name, share, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, bar(share), value))));
  const ring = Object.entries(t.entities_by_hop ?? {}).map(([hop, n]) => [HOPS[hop] ?? `${hop} hops`, n]);
  const passages = nodes.filter((node) => node.kind === "passage").length;
  const most = Math.max(1, passages, ...ring.map(([, n]) => n));
  const kept = (name, k, all) => [name, all ? k / all : 0, `${number(k)} of ${number(all)}`];
  const seeds = nodes.flatMap((node, i) => (node.hop === 0 ? [i] : [])).sort((a, b) => nodes[b].score - nodes[a].score || a - b);
  const nearest = (t.seeds ?? []).map((name) => nodes.findIndex((node) => node.kind === "entity" && node.name === name));
  const card = (title, ...rest) => el("div", { class: "card" }, el("h3", {}, title), rest);
  const buttons = (list) => el("p", { class: "chips" }, list.filter((i) => i >= 0).map(nodeButton));
  byId("steps").append(
    card(
      "1. Seeds",
      el("p", {}, `${count(t.start_entities, "entity", "entities")} to start from: the names nearest to the question, and the ends of the nearest facts.`),
      (t.linked_entities ?? []).length > 0 && el("p", { class: "note" }, `Named in the question: ${t.linked_entities.join(", ")}`),
      el("h4", {}, "Nearest names"),
      buttons(nearest),
      el("h4", {}, "Highest scores"),
      buttons(seeds.slice(0, 8)),
    ),
    card(
      "2. Reach",
      el("p", {}, t.reach),
      bars([...ring, ["passages", passages]].map(([name, n]) => [name, n / most, number(n)])),
      el("p", { class: "note" }, `${count(t.edges, "edge")}; ${t.hubs ? `${count(t.hubs, "hub")} met, looked at in part` : "no hubs met"}.`),
    ),
    card(
      "3. Kept and cut",
      el("p", {}, "The best share of entities, passages and facts stays, and every evidence path whole."),
      bars([
        kept("nodes", t.kept_nodes, t.nodes),
        kept("edges", t.kept_edges, t.edges),
        kept("entities", nodes.filter((n) => n.kind === "entity" && n.kept).length, nodes.length - passages),
        kept("passages", nodes.filter((n) => n.kind === "passage" && n.kept).length, passages),
      ]),
      el("p", { class: "note" }, `Cut: ${count(t.pruned_nodes, "node")}, ${count(t.pruned_edges, "edge")}.`),
    ),
    card("Time", bars(stages.map(([name, s]) => [name, s / longest, milliseconds(s)]))),
  );
}

/** A table in a fold, made when it is opened: rows by a search box and a switch. */
function table(id, title, columns, rows) {
  const fold = byId(id);
  fold.querySelector("summary").textContent = title;
  const body = el("tbody");
  const found = el("p", { class: "note", role: "status" });
  const search = el("input", { type: "search", "aria-label": `Search: ${title}`, placeholder: "Search" });
  const all = el("input", { type: "checkbox" });
  const fill = (most) => {
    const wanted = search.value.toLowerCase();
    const shown = rows.filter((row) => (all.checked || row.kept) && row.words.toLowerCase().includes(wanted));
    body.replaceChildren(...shown.slice(0, most).map((row) => el("tr", {}, row.cells().map((cell, k) => el(k ? "td" : "th", k ? {} : { scope: "row" }, cell)))));
    found.replaceChildren(`${number(Math.min(most, shown.length))} of ${number(shown.length)} shown. `);
    if (shown.length > most) found.append(el("button", { type: "button", class: "more", click: () => fill(Infinity) }, "Show all"));
  };
  search.addEventListener("input", () => fill(100));
  all.addEventListener("change", () => fill(100));
  fold.append(
    el("p", { class: "tools" }, search, el("label", { class: "switch" }, all, el("span", {}, "also what was cut"))),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))), body)),
    found,
  );
  fold.addEventListener("toggle", () => fill(100), { once: true });
}

function tables() {
  const byScore = (a, b) => b.score - a.score;
  const nodeRows = nodes.map((node, i) => ({
    kept: node.kept,
    score: node.score,
    words: node.name,
    cells: () => [nodeButton(i), node.kind, node.kind === "entity" && hopName(node), score(node.score), node.kept ? "kept" : "cut"],
  }));
  table("node-table", `Entities and passages (${number(nodes.length)})`, ["Name", "Kind", "Hop", "Score", "State"], nodeRows.sort(byScore));
  const factRows = links.flatMap((link, i) =>
    link.kind !== "fact" ? [] : [{
      kept: link.kept,
      score: link.score,
      words: `${nodes[link.source].name} ${nodes[link.target].name} ${link.relation} ${facts[link.fact].text}`,
      cells: () => [
        nodeButton(link.source), relationOf(link) || "→", nodeButton(link.target), opener({ link: i }, facts[link.fact].text, "open quote"),
        facts[link.fact].passages.slice(0, 3).map((id) => (texts[id] ? passageButton(id) : own(id))), score(link.score), link.kept ? "kept" : "cut",
      ],
    }],
  );
  table("fact-table", `Facts (${number(factRows.length)})`, ["From", "Relation", "To", "Sentence", "Passage", "Score", "State"], factRows.sort(byScore));
}
