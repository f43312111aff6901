// Puts the page together: one thing is selected, and graph, panel and lists all show it.

const view = new GraphView(byId("canvas"), data.layout);
const detail = byId("detail");
let back = null; // what had the focus before the panel was read

/** Select something; with `read`, the panel gets the focus. */
function show(target, { read = false } = {}) {
  const id = target.passage ?? (target.node != null && nodes[target.node].kind === "passage" ? nodes[target.node].id : null);
  if (id != null) view.path = id;
  view.selected = target;
  detail.replaceChildren(...present(detailOf(target)));
  detail.scrollTop = 0;
  for (const hit of document.querySelectorAll(".hit")) hit.setAttribute("aria-current", String(hit.dataset.passage === id));
  byId("live").textContent = read ? "" : describe(target);
  view.redraw();
  if (target.node != null) reveal(view, target.node);
  if (read) readDetail();
}

function readDetail() {
  if (!detail.contains(document.activeElement)) back = document.activeElement;
  (byId("detail-title") ?? detail).focus({ preventScroll: true });
  if (narrow.matches) detail.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "nearest" });
}

detail.addEventListener("keydown", (event) => {
  if (event.key === "Escape") back?.focus();
});

const themes = ["auto", "light", "dark"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = `Theme: ${name}`;
  view.readColours();
}
byId("theme").addEventListener("click", () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.readColours());

const cut = nodes.filter((node) => !node.kept).length;
byId("pruned-label").textContent = `Show ${number(cut)} cut`;
byId("pruned").addEventListener("change", (event) => {
  view.pruned = event.target.checked;
  view.redraw();
});
byId("in").addEventListener("click", () => zoomBy(view, 1.5));
byId("out").addEventListener("click", () => zoomBy(view, 1 / 1.5));
byId("fit").addEventListener("click", () => fitTo(view));
byId("to-path").addEventListener("click", () => fitTo(view, pathNodes(view.path)));
byId("canvas").setAttribute("aria-label", `Candidate graph: ${count(nodes.length, "node")}, ${count(links.length, "link")}`);

header();
ranking();
beside();
trace();
tables();
theme("auto");
control(view, show, readDetail, byId("tip"));
if (data.passages.length) {
  const { id } = data.passages[0];
  show(nodeOf.has(id) ? { node: nodeOf.get(id) } : { passage: id });
} else detail.append(el("p", { class: "none" }, "Nothing is selected."));
byId("live").textContent = "";
