// Points in a plane: pan, zoom, hover, lasso; what lies under and over the points is drawn by the view that owns it.
import {effect} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {layer} from './gl.js';
import {html} from './html.js';
import {ink, palette, theme} from './palette.js';
import {camera, hovered, picked, selection, tool} from './state.js';

const still = matchMedia('(prefers-reduced-motion: reduce)');
const ease = (t) => t * t * (3 - 2 * t);

export function rangeOf(...arrays) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const array of arrays) {
    for (let i = 0; array && i + 1 < array.length; i += 2) {
      const x = array[i];
      const y = array[i + 1];
      if (x < x0) x0 = x;
      if (x > x1) x1 = x;
      if (y < y0) y0 = y;
      if (y > y1) y1 = y;
    }
  }
  if (!(x1 >= x0)) return [-1, 1, -1, 1];
  const pad = (a, b) => 0.06 * (b - a) || 0.5;
  return [x0 - pad(x0, x1), x1 + pad(x0, x1), y0 - pad(y0, y1), y1 + pad(y0, y1)];
}

/** Round steps for the ticks of an axis. */
export function ticksOf(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high; t += step) ticks.push(Math.abs(t) < step / 1e6 ? 0 : t);
  return [ticks, Math.max(0, -Math.floor(Math.log10(step)))];
}

export class Plot {
  constructor(host) {
    this.host = host;
    const canvas = () => {
      const made = document.createElement('canvas');
      made.setAttribute('aria-hidden', 'true');
      host.append(made);
      return made;
    };
    this.under = canvas().getContext('2d');
    this.layer = layer(canvas());
    host.dataset.drawnBy = this.layer.kind;
    this.over = canvas().getContext('2d');
    this.options = {};
    this.began = 0;
    this.mixed = 1;
    this.lasso = null;
    this.near = -1;
    this.home = [-1, 1, -1, 1];
    this.homeBefore = this.home;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
    this.listen();
    this.stop = [
      effect(() => { camera.value; theme.value; ink.value; this.dirty(); }),
      effect(() => { picked.value; this.pick(); this.dirty(); }),
      effect(() => { hovered.value; this.dirty(); }),
    ];
    this.resize();
  }

  destroy() {
    this.gone = true;
    for (const stop of this.stop) stop();
    this.observer.disconnect();
    this.layer.destroy();
    this.host.replaceChildren();
  }

  resize() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const {clientWidth: w, clientHeight: h} = this.host;
    if (!w || !h) return;
    Object.assign(this, {ratio, w, h});
    for (const canvas of [this.under.canvas, this.layer.canvas, this.over.canvas]) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    this.draw();
  }

  /** Points, labels and sizes of a frame, which is reached within its pace. */
  show({points, labels, sizes, rows, range, pace}) {
    const same = this.points && this.points.length === points.length && !still.matches;
    const moved = points !== this.points;
    this.points = points;
    this.labels = labels;
    this.rows = rows;
    this.count = points.length / 2;
    if (moved) this.layer.move(points, same);
    if (labels) this.layer.set('label', labels);
    else this.layer.set('label', new Uint8Array(0));
    this.layer.set('scale', sizes ?? new Float32Array(0));
    this.homeBefore = same ? this.homeNow() : range;
    this.home = range;
    this.began = same ? performance.now() : 0;
    this.length = Math.max(60, 0.9 * (pace ?? 160));
    this.pick();
    this.dirty();
  }

  homeNow() {
    const t = ease(this.mixed);
    return this.home.map((v, i) => this.homeBefore[i] + (v - this.homeBefore[i]) * t);
  }

  rowOf(i) { return this.rows ? this.rows[i] : i; }

  pick() {
    if (!this.points) return;
    const mask = picked.value;
    if (!selection.value.length || this.options.selectable === false) {
      this.layer.set('picked', new Uint8Array(0));
      this.anyPicked = false;
      return;
    }
    const flags = new Uint8Array(this.count);
    for (let i = 0; i < this.count; i += 1) flags[i] = mask[this.rowOf(i)] ?? 0;
    this.layer.set('picked', flags);
    this.anyPicked = true;
  }

  dirty() {
    if (this.asked || this.gone) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.draw();
    });
  }

  /** From the plane to pixels and back; the camera is in units of the home range, so that two planes can share it. */
  frame() {
    const [x0, x1, y0, y1] = this.homeNow();
    const {zoom, x, y} = camera.value;
    const inset = this.options.inset ?? [44, 12, 12, 30]; // left, right, top, bottom
    const [w, h] = [this.w - inset[0] - inset[1], this.h - inset[2] - inset[3]];
    let sx = w / (x1 - x0);
    let sy = h / (y1 - y0);
    if (this.options.equal !== false) sx = sy = Math.min(sx, sy);
    sx *= zoom;
    sy *= zoom;
    const cx = (x0 + x1) / 2 + (x * (x1 - x0)) / 2;
    const cy = (y0 + y1) / 2 + (y * (y1 - y0)) / 2;
    const mx = inset[0] + w / 2;
    const my = inset[2] + h / 2;
    return {
      sx, sy, w: this.w, h: this.h, inset,
      x: (v) => mx + (v - cx) * sx, y: (v) => my - (v - cy) * sy,
      u: (px) => cx + (px - mx) / sx, v: (py) => cy - (py - my) / sy,
    };
  }

  draw() {
    if (!this.w || !this.points || this.gone) return;
    const t = this.began ? Math.min(1, (performance.now() - this.began) / this.length) : 1;
    this.mixed = t;
    const map = this.frame();
    this.map = map;
    const {ratio, w, h} = this;
    const pal = palette.value;
    const view = new Float32Array([
      (2 * map.sx) / w, (2 * map.sy) / h, (2 * map.x(0)) / w - 1, 1 - (2 * map.y(0)) / h,
    ]);
    const tween = (name) => {
      const [now, before] = [this.options.arrays?.[name], this.options.before?.[name]];
      if (!now || t === 1 || !before || before.data.length !== now.data.length) return now?.data;
      const k = ease(t);
      return now.data.map((v, i) => before.data[i] + (v - before.data[i]) * k);
    };
    const context = {map, tween, t, ink: ink.value, palette: pal, plot: this};
    const clean = (c) => {
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.clearRect(0, 0, w, h);
    };
    clean(this.under);
    if (this.options.ticks !== false) this.drawGrid(map);
    this.options.under?.(this.under, context);
    this.layer.clear();
    const usual = Math.max(1.6, Math.min(8, 260 / Math.sqrt(this.count)));
    const size = (this.options.size ?? usual) * Math.min(2.5, camera.value.zoom ** 0.35);
    const dim = this.anyPicked ? 0.16 : this.options.alpha ?? (this.count > 20000 ? 0.55 : 0.82);
    this.layer.drawPoints({view, mixed: ease(t), size: size * ratio, dim, palette: pal, count: this.count});
    clean(this.over);
    this.options.over?.(this.over, context);
    this.drawHover(map);
    if (this.lasso) this.drawLasso();
    if (t < 1) this.dirty();
  }

  drawGrid(map) {
    const c = this.under;
    const {inset, w, h} = map;
    c.font = '11px system-ui, sans-serif';
    c.lineWidth = 1;
    c.strokeStyle = ink.value.grid;
    c.fillStyle = ink.value.soft;
    const [xs, dx] = ticksOf(map.u(inset[0]), map.u(w - inset[1]), (w - inset[0]) / 54);
    const [ys, dy] = ticksOf(map.v(h - inset[3]), map.v(inset[2]), (h - inset[3]) / 60);
    c.beginPath();
    for (const v of xs) { const x = Math.round(map.x(v)) + 0.5; c.moveTo(x, inset[2]); c.lineTo(x, h - inset[3]); }
    for (const v of ys) { const y = Math.round(map.y(v)) + 0.5; c.moveTo(inset[0], y); c.lineTo(w - inset[1], y); }
    c.stroke();
    const minus = (v, digits) => v.toFixed(digits).replace('-', '−');
    c.textAlign = 'center';
    c.textBaseline = 'top';
    for (const v of xs) c.fillText(minus(v, dx), map.x(v), h - inset[3] + 4);
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    for (const v of ys) c.fillText(minus(v, dy), inset[0] - 6, map.y(v));
    const [ax, ay] = this.options.axes ?? [];
    c.fillStyle = ink.value.ink;
    if (ax) { c.textAlign = 'right'; c.textBaseline = 'bottom'; c.fillText(ax, w - inset[1] - 2, h - inset[3] - 3); }
    if (ay) { c.textAlign = 'left'; c.textBaseline = 'top'; c.fillText(ay, inset[0] + 4, inset[2] + 2); }
  }

  position(i) { return [this.points[2 * i], this.points[2 * i + 1]]; }

  drawHover(map) {
    let i = this.near;
    if (i < 0 && hovered.value >= 0 && this.options.selectable !== false) {
      i = this.rows ? this.rows.indexOf(hovered.value) : hovered.value;
    }
    if (i < 0 || i >= this.count) return;
    const [x, y] = this.position(i);
    const c = this.over;
    c.beginPath();
    c.arc(map.x(x), map.y(y), 7, 0, 7);
    c.lineWidth = 2;
    c.strokeStyle = ink.value.ink;
    c.stroke();
  }

  drawLasso() {
    const c = this.over;
    c.beginPath();
    this.lasso.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
    c.closePath();
    c.fillStyle = `${ink.value.accent}22`;
    c.fill();
    c.strokeStyle = ink.value.accent;
    c.lineWidth = 1.5;
    c.setLineDash([4, 3]);
    c.stroke();
    c.setLineDash([]);
  }

  /** The nearest point within a finger's breadth, or -1. */
  find(px, py) {
    if (!this.map || !this.points) return -1;
    const [u, v] = [this.map.u(px), this.map.v(py)];
    let least = (14 / this.map.sx) ** 2;
    let best = -1;
    const squeeze = (this.map.sy / this.map.sx) ** 2;
    for (let i = 0; i < this.count; i += 1) {
      const d = (this.points[2 * i] - u) ** 2 + squeeze * (this.points[2 * i + 1] - v) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }

  within(polygon) {
    const path = polygon.map(([x, y]) => [this.map.u(x), this.map.v(y)]);
    const [x0, x1, y0, y1] = rangeOf(Float32Array.from(path.flat()));
    const rows = [];
    for (let i = 0; i < this.count; i += 1) {
      const x = this.points[2 * i];
      const y = this.points[2 * i + 1];
      if (x < x0 || x > x1 || y < y0 || y > y1) continue;
      let inside = false;
      for (let j = 0, k = path.length - 1; j < path.length; k = j, j += 1) {
        const [xj, yj] = path[j];
        const [xk, yk] = path[k];
        if (yj > y !== yk > y && x < ((xk - xj) * (y - yj)) / (yk - yj) + xj) inside = !inside;
      }
      if (inside) rows.push(this.rowOf(i));
    }
    return Int32Array.from(rows).sort();
  }

  zoomAt(px, py, factor) {
    const before = this.frame();
    const [u, v] = [before.u(px), before.v(py)];
    const {zoom, x, y} = camera.value;
    const next = Math.min(400, Math.max(0.5, zoom * factor));
    const [x0, x1, y0, y1] = this.homeNow();
    const k = 1 - zoom / next;
    camera.value = {
      zoom: next,
      x: x + ((u - (x0 + x1) / 2 - (x * (x1 - x0)) / 2) * k * 2) / (x1 - x0),
      y: y + ((v - (y0 + y1) / 2 - (y * (y1 - y0)) / 2) * k * 2) / (y1 - y0),
    };
  }

  pan(dx, dy) {
    const [x0, x1, y0, y1] = this.homeNow();
    const {zoom, x, y} = camera.value;
    camera.value = {zoom, x: x - (2 * dx) / this.map.sx / (x1 - x0), y: y + (2 * dy) / this.map.sy / (y1 - y0)};
  }

  listen() {
    const {host} = this;
    const spot = (event) => {
      const box = host.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const fingers = new Map();
    let moving = null;
    host.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoomAt(...spot(event), Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)));
    }, {passive: false});
    host.addEventListener('dblclick', () => { camera.value = {zoom: 1, x: 0, y: 0}; });
    host.addEventListener('pointerdown', (event) => {
      if (event.button || this.options.drag?.('down', this, ...spot(event), event)) return;
      fingers.set(event.pointerId, spot(event));
      if (event.pointerType === 'touch' && tool.value === 'look' && fingers.size < 2) return;
      host.setPointerCapture(event.pointerId);
      const selecting = this.options.selectable !== false && (tool.value === 'lasso') !== event.shiftKey;
      moving = spot(event);
      this.from = moving;
      if (selecting && fingers.size === 1) this.lasso = [moving];
      else this.lasso = null;
    });
    host.addEventListener('pointermove', (event) => {
      const at = spot(event);
      if (this.options.drag?.('move', this, ...at, event)) return;
      if (fingers.size === 2 && fingers.has(event.pointerId)) {
        const [a, b] = [...fingers.values()];
        const before = Math.hypot(a[0] - b[0], a[1] - b[1]);
        fingers.set(event.pointerId, at);
        const [c, d] = [...fingers.values()];
        this.zoomAt((c[0] + d[0]) / 2, (c[1] + d[1]) / 2, Math.hypot(c[0] - d[0], c[1] - d[1]) / (before || 1));
        return;
      }
      if (this.lasso) { this.lasso.push(at); this.dirty(); return; }
      if (moving) { this.pan(at[0] - moving[0], at[1] - moving[1]); moving = at; return; }
      this.pointed ||= requestAnimationFrame(() => { // once a picture: a million points are looked through
        this.pointed = 0;
        if (!this.gone) this.hover(...this.latest);
      });
      this.latest = at;
    });
    const end = (event) => {
      fingers.delete(event.pointerId);
      if (this.options.drag?.('up', this, ...spot(event), event)) return;
      const at = spot(event);
      const away = ([x, y]) => Math.hypot(x - this.from[0], y - this.from[1]) >= 4;
      const click = this.from && !away(at) && !this.lasso?.some(away); // a lasso may end where it began
      if (this.lasso && this.lasso.length > 4 && !click) {
        const rows = this.within(this.lasso);
        selection.value = event.altKey ? Int32Array.from(new Set([...selection.value, ...rows])).sort() : rows;
      } else if (this.from && click) {
        const i = this.find(...at);
        if (this.options.onClick) this.options.onClick(i);
        else if (this.options.selectable !== false) {
          selection.value = i < 0 ? new Int32Array(0) : Int32Array.of(this.rowOf(i));
        }
      }
      this.lasso = null;
      this.from = moving = null;
      this.dirty();
    };
    host.addEventListener('pointerup', end);
    host.addEventListener('pointercancel', (event) => {
      fingers.delete(event.pointerId);
      this.lasso = this.from = moving = null;
      this.dirty();
    });
    host.addEventListener('pointerleave', () => { this.hover(-1e9, -1e9); });
  }

  hover(px, py) {
    const i = this.find(px, py);
    this.options.onMove?.(this, px, py);
    if (i === this.near) return;
    this.near = i;
    if (this.options.selectable !== false) hovered.value = i < 0 ? -1 : this.rowOf(i);
    this.options.onHover?.(i, i < 0 ? null : this.map
      && [this.map.x(this.points[2 * i]), this.map.y(this.points[2 * i + 1])], this);
    this.dirty();
  }
}

/**
 * A plot as a component. `read(frame)` gives {points, labels, sizes, rows, range}; the other options are functions that
 * draw under and over the points.
 */
export function PlotView({run, read, label, children, ...options}) {
  const host = useRef(null);
  const plot = useRef(null);
  useEffect(() => {
    plot.current = new Plot(host.current);
    return () => plot.current.destroy();
  }, []);
  const frame = run.frame.value;
  useEffect(() => {
    const p = plot.current;
    const before = p.frameShown && p.frameShown !== frame ? p.frameShown.arrays : p.options.before;
    p.options = {...options, arrays: frame?.arrays, before};
    if (frame && p.frameShown !== frame) {
      p.frameShown = frame;
      p.show({...read(frame), pace: run.pace});
    } else p.dirty();
  });
  const touch = tool.value === 'look' ? 'pan-y' : 'none';
  return html`<div class="plot" role="img" aria-label=${label}>
    <div class="layers" ref=${host} style=${{touchAction: touch}}></div>${children}
  </div>`;
}
