// The words on the canvas: the most telling first, each only where it covers no other and no node that matters.

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

class Labels {
  constructor(view) {
    this.view = view;
    this.widths = new Map();
  }

  draw(onPath) {
    const taken = [];
    const [cx, cy] = this.view.toScreen([0, 0]);
    taken.push([cx - 12, cy - 12, cx + 12, cy + 12]);
    taken.names = new Set();
    const cover = (i) => {
      const [[x, y], r] = [this.view.at(i), this.view.size(i)];
      taken.push([x - r, y - r, x + r, y + r]);
    };
    const wanted = this.wanted(onPath);
    const strong = (i) => onPath.has(i) || this.view.selected.node === i || this.view.hover?.node === i;
    wanted.filter((i) => strong(i) || rankOf.has(nodes[i].id)).forEach(cover);
    this.relations(taken);
    wanted.filter(strong).forEach((i) => this.place(i, true, taken));
    const rest = wanted.filter((i) => !strong(i));
    rest.filter((i) => nodes[i].standing > 0.6).forEach(cover);
    rest.filter((i) => nodes[i].standing > 0.6).forEach((i) => this.place(i, false, taken));
    this.view.order.filter((i) => nodes[i].standing > 0.3 && this.view.visible(i)).forEach(cover);
    rest.forEach((i) => this.place(i, false, taken));
    this.bandNames(taken);
  }

  /** The nodes to name, the most telling first. */
  wanted(onPath) {
    const { selected, hover } = this.view;
    const near = (target) =>
      target?.node == null ? [] : best(around[target.node]).map((l) => (links[l].source === target.node ? links[l].target : links[l].source));
    const ends = selected.link != null ? [links[selected.link].source, links[selected.link].target] : [];
    const returned = data.passages.flatMap((hit) => nodeOf.get(hit.id) ?? []);
    const strongest = [...this.view.order].reverse().filter((i) => nodes[i].kept);
    const most = Math.round((this.view.w * this.view.h * Math.max(1, this.view.view.zoom)) / 16000);
    const list = [hover?.node, selected.node, ...ends, ...onPath, ...returned, ...near(selected).slice(0, 12), ...strongest.slice(0, most)];
    return [...new Set(list)].filter((i) => i != null && this.view.visible(i));
  }

  /** Width of a text in pixels, measured once. */
  width(text, font) {
    const key = font + text;
    if (!this.widths.has(key)) {
      this.view.pen.font = font;
      this.widths.set(key, this.view.pen.measureText(text).width);
    }
    return this.widths.get(key);
  }

  /** One name beside its node, at the first of four places that is free; else none. */
  place(i, strong, taken) {
    const [x, y] = this.view.at(i);
    const name = nodes[i].name;
    const shown = clip(name, 30);
    if (!strong && taken.names.has(nodes[i].kind + shown)) return;
    const [size, weight] = strong ? [13, 650] : [11.5, 500];
    const w = this.width(shown, `${weight} ${size}px ${this.view.font}`);
    const gap = this.view.size(i) + (this.view.selected.node === i ? 12 : strong ? 8 : 4);
    const right = [x + gap, y - size / 2 - 1];
    const left = [x - gap - w, y - size / 2 - 1];
    const [above, below] = [[x - w / 2, y - gap - size - 2], [x - w / 2, y + gap]];
    const outwards = x >= this.view.toScreen([0, 0])[0] ? [right, above, below, left] : [left, above, below, right];
    for (const [lx, ly] of outwards) {
      const box = [lx - 2, ly, lx + w + 2, ly + size + 2];
      if (lx < 3 || lx + w > this.view.w - 3 || ly < 1 || ly + size > this.view.h - 3 || taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      taken.names.add(nodes[i].kind + shown);
      const colour = nodes[i].kept ? this.view.colour.ink : this.view.colour.quiet;
      this.view.text(shown, lx, ly + size / 2 + 1, { size, weight, colour, halo: true });
      return;
    }
  }

  /** What the arrows of the path and of the selected node say. */
  relations(taken) {
    const { selected } = this.view;
    const own = selected.link != null ? [selected.link] : selected.node != null ? best(around[selected.node]).slice(0, 8) : [];
    const onPath = pathOf(this.view.path).map(([i]) => i);
    for (const i of new Set([...onPath, ...own])) {
      const link = links[i];
      if ((link.kind !== "fact" && !onPath.includes(i)) || !this.view.visible(link.source) || !this.view.visible(link.target)) continue;
      const text = relationOf(link) || (onPath.includes(i) ? clip(facts[link.fact].text, 30) : "");
      if (!text) continue;
      const w = this.width(text, `500 11px ${this.view.font}`);
      const [x, y] = this.view.onArc(this.view.arc(link), 0.5);
      const box = [x - w / 2 - 3, y - 8, x + w / 2 + 3, y + 8];
      if (taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      this.view.text(text, x, y, { size: 11, align: "center", colour: onPath.includes(i) ? this.view.colour.path : this.view.colour.ink, halo: true });
    }
  }

  /** The name of each ring, at its inner edge. */
  bandNames(taken) {
    this.view.names.forEach((name, k) => {
      const inner = k ? this.view.radii[k - 1] : 0.13;
      const w = this.width(name, `600 10px ${this.view.font}`);
      for (const turn of [0.75, 0.25, 0.7, 0.8, 0.5, 0]) {
        const r = inner + 0.012 + (this.view.radii[k] - inner) * 0.06;
        const [x, y] = this.view.toScreen([r * Math.cos(2 * Math.PI * turn), r * Math.sin(2 * Math.PI * turn)]);
        const box = [x - w / 2 - 3, y - 7, x + w / 2 + 3, y + 7];
        if (taken.some((other) => overlap(box, other))) continue;
        taken.push(box);
        this.view.text(name, x, y, { size: 10, weight: 600, align: "center", colour: this.view.colour.quiet, halo: true });
        return;
      }
    });
  }
}
