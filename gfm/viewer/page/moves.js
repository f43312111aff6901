// What the hand does with the graph: pointer, wheel and keys. `choose` is told what was chosen, `open` what to read.

const REACH = 7; // pixels around a node or a link that still count as it

/** The node, or else the link, at a place on the screen; null where there is neither. */
function hit(view, x, y) {
  let found = null;
  let least = Infinity;
  for (const i of view.order) {
    if (!view.visible(i)) continue;
    const [nx, ny] = view.at(i);
    const away = Math.hypot(nx - x, ny - y) - view.size(i);
    if (away < least && away < REACH) [found, least] = [{ node: i }, away];
  }
  if (found) return found;
  const shown = new Set(view.selected.node != null ? around[view.selected.node] : []);
  for (const [i] of pathOf(view.path)) shown.add(i);
  links.forEach((link, i) => link.kept && link.kind === "fact" && shown.add(i));
  for (const i of shown) {
    if (!view.visible(links[i].source) || !view.visible(links[i].target)) continue;
    const arc = view.arc(links[i]);
    for (let t = 0.06; t < 1; t += 0.08) {
      const [ax, ay] = view.onArc(arc, t);
      const away = Math.hypot(ax - x, ay - y);
      if (away < least && away < REACH) [found, least] = [{ link: i }, away];
    }
  }
  return found;
}

/** Zoom by a factor; the place (x, y) of the screen stays where it is. */
function zoomBy(view, factor, x = view.w / 2, y = view.h / 2) {
  const zoom = Math.min(12, Math.max(0.6, view.view.zoom * factor));
  const shift = 1 / zoom - 1 / view.view.zoom;
  glide(view, { zoom, x: view.view.x + (x - view.w / 2) * shift, y: view.view.y + (y - view.h / 2) * shift });
}

/** Move to another view, at once where motion is not wanted. */
function glide(view, target) {
  cancelAnimationFrame(view.gliding);
  const from = { ...view.view };
  const start = performance.now();
  const step = (now) => {
    const t = calm.matches ? 1 : Math.min(1, Math.max(0, (now - start) / 180));
    const eased = 1 - (1 - t) ** 3;
    for (const name of ["zoom", "x", "y"]) view.view[name] = from[name] + (target[name] - from[name]) * eased;
    view.draw();
    if (t < 1) view.gliding = requestAnimationFrame(step);
  };
  view.gliding = requestAnimationFrame(step);
}

/** A view in which some nodes fill the screen; all of the graph without nodes. */
function fitTo(view, list = []) {
  if (!list.length) return glide(view, { zoom: 1, x: 0, y: 0 });
  const places = [[0, 0], ...list.map((i) => view.places[i])];
  const [xs, ys] = [places.map((p) => p[0] * view.rx), places.map((p) => p[1] * view.ry)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const zoom = Math.min(4, (0.62 * view.w) / Math.max(right - left, 30), (0.7 * view.h) / Math.max(bottom - top, 30));
  return glide(view, { zoom: Math.max(1, zoom), x: -(left + right) / 2, y: -(top + bottom) / 2 });
}

/** Move just so far that a node is on the screen. */
function reveal(view, i) {
  const [x, y] = view.at(i);
  const over = (place, size) => Math.min(0, place - 40) + Math.max(0, place - size + 40);
  const [dx, dy] = [over(x, view.w), over(y, view.h)];
  const { zoom } = view.view;
  if (dx || dy) glide(view, { zoom, x: view.view.x - dx / zoom, y: view.view.y - dy / zoom });
}

/** The nearest visible node in the direction of an arrow key. */
function neighbour(view, key) {
  const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
  const from = view.selected.node;
  if (from == null) return nodeOf.get(data.passages[0]?.id) ?? view.order.at(-1);
  const [x, y] = view.at(from);
  let found = from;
  let least = Infinity;
  for (const i of view.order) {
    if (i === from || !view.visible(i)) continue;
    const [nx, ny] = view.at(i);
    const ahead = (nx - x) * dx + (ny - y) * dy;
    const aside = Math.abs((nx - x) * dy) + Math.abs((ny - y) * dx);
    const cost = ahead + 2.5 * aside;
    if (ahead > 0.5 && aside < 2.5 * ahead && cost < least) [found, least] = [i, cost];
  }
  return found;
}

function control(view, choose, open, tip) {
  const { canvas } = view;
  const fingers = new Map();
  let moved = 0;

  const hover = (target, x, y) => {
    if (target?.node === view.hover?.node && target?.link === view.hover?.link) return;
    view.hover = target;
    canvas.style.cursor = target ? "pointer" : "";
    tip.hidden = target?.link == null;
    if (!tip.hidden) {
      const link = links[target.link];
      tip.replaceChildren(own(`${nodes[link.source].name} → ${nodes[link.target].name}`, "b"), own(facts[link.fact]?.text ?? "", "span"));
      tip.style.transform = `translate(${Math.min(x + 14, view.w - 270)}px, ${Math.min(y + 14, view.h - 110)}px)`;
    }
    view.redraw();
  };
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return { size: Math.hypot(a[0] - b[0], a[1] - b[1]), x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2 };
  };

  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const place = [event.offsetX, event.offsetY];
    const before = fingers.get(event.pointerId);
    if (!before) return hover(hit(view, ...place), ...place);
    const old = fingers.size === 2 && spread();
    fingers.set(event.pointerId, place);
    moved += Math.hypot(place[0] - before[0], place[1] - before[1]);
    if (old) {
      const now = spread();
      const zoom = Math.min(12, Math.max(0.6, view.view.zoom * (now.size / Math.max(old.size, 1))));
      const shift = 1 / zoom - 1 / view.view.zoom;
      view.view = { zoom, x: view.view.x + (now.x - view.w / 2) * shift, y: view.view.y + (now.y - view.h / 2) * shift };
    } else if (moved > 3) {
      view.view.x += (place[0] - before[0]) / view.view.zoom;
      view.view.y += (place[1] - before[1]) / view.view.zoom;
    }
    return view.redraw();
  });
  const lift = (event) => {
    fingers.delete(event.pointerId);
    if (event.type === "pointerup" && moved <= 3) {
      const target = hit(view, event.offsetX, event.offsetY);
      if (target) choose(target);
    }
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("dblclick", (event) => zoomBy(view, 1.8, event.offsetX, event.offsetY));
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
      event.preventDefault();
      zoomBy(view, Math.exp(-event.deltaY / 250), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) {
      const i = neighbour(view, event.key);
      if (i != null) choose({ node: i });
    } else if (event.key === "Enter") open();
    else if (event.key === "+" || event.key === "=") zoomBy(view, 1.4);
    else if (event.key === "-") zoomBy(view, 1 / 1.4);
    else if (event.key === "0") fitTo(view);
    else return;
    event.preventDefault();
  });
}
