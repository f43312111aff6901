// The candidate graph on a canvas: how it looks. What the hand does with it stands in moves.js.

class GraphView {
  constructor(canvas, { places, radii, names }) {
    Object.assign(this, { canvas, places, radii, names, pen: canvas.getContext("2d", { alpha: false }) });
    this.view = { zoom: 1, x: 0, y: 0 };
    this.selected = {};
    this.hover = null;
    this.path = "";
    this.pruned = true;
    this.waiting = false;
    this.labels = new Labels(this);
    this.order = nodes.map((_, i) => i).sort((a, b) => nodes[a].kept - nodes[b].kept || nodes[a].score - nodes[b].score);
    this.readColours();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    const names = ["paper", "ink", "quiet", "cut", "band-a", "band-b", "link", "path"];
    this.colour = Object.fromEntries(names.map((name) => [name, read(name)]));
    const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    this.ramp = {};
    for (const kind of ["entity", "passage"]) {
      const [low, high] = [parts(read(`${kind}-low`)), parts(read(`${kind}-high`))];
      this.ramp[kind] = (s) => low.map((v, i) => Math.round(v + (high[i] - v) * s));
    }
    this.font = getComputedStyle(document.body).fontFamily;
    this.redraw();
  }

  resize() {
    const { clientWidth: w, clientHeight: h } = this.canvas.parentElement;
    const ratio = devicePixelRatio || 1;
    Object.assign(this, { w, h, ratio });
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    const [x, y] = [w / 2 - (w > 560 ? 64 : 18), h / 2 - 26];
    this.rx = Math.min(x, 1.35 * y);
    this.ry = Math.min(y, 1.35 * x);
    this.draw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  // ---- places on the screen

  at(i) {
    return this.toScreen(this.places[i]);
  }

  toScreen([x, y]) {
    const { zoom, x: dx, y: dy } = this.view;
    return [this.w / 2 + (x * this.rx + dx) * zoom, this.h / 2 + (y * this.ry + dy) * zoom];
  }

  size(i) {
    const node = nodes[i];
    const scale = Math.max(0.6, Math.min(1.25, Math.min(this.w, this.h) / 620)) * this.view.zoom ** 0.45;
    if (!node.kept) return 1.7 * scale;
    if (rankOf.has(node.id) && node.kind === "passage") return Math.max(8, (7 + 6 * node.standing) * scale);
    return (2.6 + 7.5 * node.standing) * scale;
  }

  visible(i) {
    return nodes[i].kept || this.pruned || this.selected.node === i;
  }

  /** Two ends and the control point of a link's arc, bent towards the middle. */
  arc(link) {
    const [a, b] = [this.at(link.source), this.at(link.target)];
    const middle = this.toScreen([0, 0]);
    const bend = [0, 1].map((k) => (a[k] + b[k]) / 2 + 0.16 * (middle[k] - (a[k] + b[k]) / 2));
    return [a, bend, b];
  }

  onArc([a, m, b], t) {
    return [0, 1].map((k) => (1 - t) ** 2 * a[k] + 2 * t * (1 - t) * m[k] + t ** 2 * b[k]);
  }

  // ---- drawing

  draw() {
    this.waiting = false;
    if (!this.w) return;
    const { pen } = this;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.fillStyle = this.colour.paper;
    pen.fillRect(0, 0, this.w, this.h);
    this.drawBands();
    this.drawLinks();
    const onPath = new Set(pathNodes(this.path));
    if (this.pruned) this.drawCut();
    for (const i of this.order) if (nodes[i].kept || this.selected.node === i || this.hover?.node === i) this.drawNode(i, onPath.has(i));
    this.labels.draw(onPath);
  }

  drawBands() {
    const { pen } = this;
    const [x, y] = this.toScreen([0, 0]);
    const { zoom } = this.view;
    for (let k = this.radii.length - 1; k >= 0; k--) {
      pen.beginPath();
      pen.ellipse(x, y, this.radii[k] * this.rx * zoom, this.radii[k] * this.ry * zoom, 0, 0, 2 * Math.PI);
      pen.fillStyle = this.colour[k % 2 ? "band-b" : "band-a"];
      pen.fill();
    }
    pen.beginPath();
    pen.arc(x, y, 11, 0, 2 * Math.PI);
    pen.fillStyle = this.colour.ink;
    pen.fill();
    this.text("?", x, y + 0.5, { size: 13, weight: 700, align: "center", colour: this.colour.paper });
  }

  drawLinks() {
    const { pen } = this;
    const kept = { fact: [], mention: [], subject: [], synonym: [] };
    for (const link of links) if (link.kept) kept[link.kind].push(link);
    pen.strokeStyle = pen.fillStyle = this.colour.link;
    pen.lineWidth = 0.8;
    const stroke = (list, alpha, dash = []) => {
      pen.globalAlpha = alpha;
      pen.setLineDash(dash);
      for (const link of list) {
        pen.beginPath(); // many short paths are painted several times faster than one long one
        this.trace(this.arc(link));
        pen.stroke();
      }
      pen.setLineDash([]);
    };
    stroke([...kept.mention, ...kept.subject], 0.16);
    stroke(kept.synonym, 0.4, [2, 3]);
    stroke(kept.fact, 0.34);
    pen.globalAlpha = 0.5;
    for (const link of kept.fact) {
      pen.beginPath();
      this.head(this.arc(link), this.size(link.target), 4);
      pen.fill();
    }
    pen.globalAlpha = 1;
    this.drawChosen();
    this.drawPath();
  }

  /** All links of the selected node, or the selected link. */
  drawChosen() {
    const { pen, selected } = this;
    const own = selected.link != null ? [selected.link] : selected.node != null ? around[selected.node] : [];
    const lit = this.hover?.node != null ? [...own, ...around[this.hover.node]] : own;
    pen.strokeStyle = pen.fillStyle = this.colour.ink;
    for (const i of lit) {
      const link = links[i];
      if (!this.visible(link.source) || !this.visible(link.target)) continue;
      const arc = this.arc(link);
      pen.globalAlpha = i === selected.link ? 1 : link.kept ? 0.7 : 0.28;
      pen.lineWidth = i === selected.link ? 5 : 1;
      pen.setLineDash(link.kind === "synonym" ? [2, 3] : []);
      pen.beginPath();
      this.trace(arc);
      pen.stroke();
      if (link.kind !== "fact") continue;
      pen.beginPath();
      this.head(arc, this.size(link.target), 6);
      pen.fill();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  drawPath() {
    const { pen } = this;
    const steps = pathOf(this.path);
    if (!steps.length) return;
    pen.strokeStyle = pen.fillStyle = this.colour.path;
    pen.lineWidth = 2.4;
    pen.beginPath();
    for (const [i] of steps) this.trace(this.arc(links[i]));
    pen.stroke();
    pen.beginPath();
    for (const [i] of steps) if (links[i].kind === "fact") this.head(this.arc(links[i]), this.size(links[i].target), 9);
    pen.fill();
    const first = this.at(pathNodes(this.path)[0]);
    pen.setLineDash([1, 5]);
    pen.lineCap = "round";
    pen.beginPath();
    pen.moveTo(...this.toScreen([0, 0]));
    pen.lineTo(...first);
    pen.stroke();
    pen.setLineDash([]);
    pen.lineCap = "butt";
  }

  trace([a, m, b]) {
    this.pen.moveTo(a[0], a[1]);
    this.pen.quadraticCurveTo(m[0], m[1], b[0], b[1]);
  }

  head([, m, b], gap, size) {
    const angle = Math.atan2(b[1] - m[1], b[0] - m[0]);
    const [x, y] = [b[0] - (gap + 1) * Math.cos(angle), b[1] - (gap + 1) * Math.sin(angle)];
    this.pen.moveTo(x, y);
    for (const side of [-0.42, 0.42]) this.pen.lineTo(x - size * Math.cos(angle + side), y - size * Math.sin(angle + side));
    this.pen.closePath();
  }

  /** All nodes that were cut, as plain dots: they are many. */
  drawCut() {
    const { pen } = this;
    pen.fillStyle = pen.strokeStyle = this.colour.cut;
    pen.lineWidth = 0.7;
    const circle = (x, y, r) => {
      pen.beginPath();
      pen.arc(x, y, r, 0, 2 * Math.PI);
    };
    for (const i of this.order) {
      if (nodes[i].kept) continue;
      const [[x, y], r] = [this.at(i), this.size(i)];
      if (nodes[i].kind === "passage") {
        pen.fillRect(x - r, y - r, 2 * r, 2 * r);
        continue;
      }
      circle(x, y, r);
      pen.fill();
      if (nodes[i].hop !== 0) continue;
      circle(x, y, r + 1.6);
      pen.stroke();
    }
  }

  drawNode(i, onPath) {
    const { pen, colour } = this;
    const node = nodes[i];
    const [x, y] = this.at(i);
    const size = this.size(i);
    const rank = node.kind === "passage" ? rankOf.get(node.id)?.rank : null;
    const shape = (grown) => {
      pen.beginPath();
      if (node.kind === "entity") pen.arc(x, y, size + grown, 0, 2 * Math.PI);
      else pen.roundRect(x - size - grown, y - size - grown, 2 * (size + grown), 2 * (size + grown), size > 5 ? 3 : 0.5);
    };
    if (node.kept) {
      shape(1.2);
      pen.fillStyle = colour.paper;
      pen.fill();
    }
    shape(0);
    const fill = this.ramp[node.kind](node.standing);
    pen.fillStyle = node.kept ? `rgb(${fill.join(" ")})` : colour.cut;
    pen.fill();
    if (node.hop === 0) this.ring(shape, size > 3 ? 2.6 : 1.6, node.kept ? 1.1 : 0.7, colour[node.kept ? "quiet" : "cut"]);
    if (onPath) this.ring(shape, node.hop === 0 ? 5 : 2.6, 2.4, colour.path);
    if (this.selected.node === i) this.ring(shape, onPath ? 7.5 : 5, 2, colour.ink);
    else if (this.hover?.node === i) this.ring(shape, 4.5, 1.5, colour.ink);
    if (rank && node.kept)
      this.text(String(rank), x, y + 0.5, { size: Math.min(13, size * 1.25), weight: 700, align: "center", colour: readable(fill) });
  }

  ring(shape, grown, width, colour) {
    shape(grown);
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = width;
    this.pen.stroke();
  }

  text(text, x, y, { size, weight = 500, align = "left", colour, halo = false }) {
    const { pen } = this;
    pen.font = `${weight} ${size}px ${this.font}`;
    pen.textAlign = align;
    pen.textBaseline = "middle";
    if (halo) {
      pen.strokeStyle = this.colour.paper;
      pen.lineWidth = 3.5;
      pen.lineJoin = "round";
      pen.strokeText(text, x, y);
    }
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }
}

/** Black or white, whichever is easier to read on a colour (red, green and blue from 0 to 255). */
function readable(colour) {
  const light = colour.reduce((sum, part, i) => sum + [0.2126, 0.7152, 0.0722][i] * (part / 255) ** 2.2, 0);
  return light > 0.18 ? "#14171b" : "#ffffff";
}
