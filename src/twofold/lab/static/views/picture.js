// A photograph before and after, with a line to drag between them; the hole to fill is painted with the mouse.
import {signal} from '@preact/signals';
import {useEffect, useRef, useState} from 'preact/hooks';
import * as api from '../api.js';
import {Board} from '../board.js';
import {pictureCanvas} from '../heat.js';
import {html} from '../html.js';
import {set} from '../state.js';
import {bytes, readNumber} from '../text.js';

const divide = signal(0.5); // linked: the line stands at the same place in both runs
const brush = signal(10);
const dragged = signal(null); // {run, rate, output, meta}: the picture at a rate that is being dragged

const canvases = new WeakMap(); // a picture is turned into a canvas once
function canvasOf(picture) {
  if (!canvases.has(picture.data)) canvases.set(picture.data, pictureCanvas(picture));
  return canvases.get(picture.data);
}

function runsOf(mask) {
  const runs = [];
  for (let i = 0; i < mask.length; i += 1) {
    if (!mask[i]) continue;
    const start = i;
    while (i + 1 < mask.length && mask[i + 1]) i += 1;
    runs.push([start, i + 1 - start]);
  }
  return runs;
}

function Picture({run, frame}) {
  const [before, setBefore] = useState(null); // the data itself, until the first frame is there
  const [painted, setPainted] = useState(null);
  const [dragging, setDragging] = useState(false);
  const paints = run.method.settings.find((s) => s.type === 'mask');
  useEffect(() => {
    if (!paints) return;
    api.get(`/api/data/${encodeURIComponent(run.data.id)}`).then(({picture}) => picture
      && setBefore({shape: picture.shape, data: api.bytesOf(picture.data)}), () => {});
  }, [run.data.id]);
  const at = dragged.value?.run === run.id ? dragged.value : null;
  const a = at && frame ? {...frame.arrays, output: at.output} : frame?.arrays;
  const base = a?.input ?? before;
  if (!base) return html`<p class="waiting">Starting.</p>`;
  const [h, w] = base.shape;
  const boxOf = (cw, ch) => {
    const s = Math.min((cw - 8) / w, (ch - 8) / h);
    return {x: (cw - s * w) / 2, y: (ch - s * h) / 2, w: s * w, h: s * h, s};
  };
  const draw = (c, cw, ch, ink) => {
    const box = boxOf(cw, ch);
    c.imageSmoothingEnabled = box.s < 1.5;
    const put = (picture, from, to) => {
      if (!picture) return;
      const source = canvasOf(picture);
      c.drawImage(source, from * w, 0, (to - from) * w, h, box.x + from * box.w, box.y, (to - from) * box.w, box.h);
    };
    const cut = painted ? 1 : a?.output ? divide.value : 1;
    put(painted ? a?.original ?? before ?? base : base, 0, cut);
    if (cut < 1) put(a.output, cut, 1);
    if (painted) {
      const veil = Object.assign(document.createElement('canvas'), {width: w, height: h});
      const context = veil.getContext('2d');
      const image = context.createImageData(w, h);
      for (let i = 0; i < w * h; i += 1) if (painted[i]) image.data.set([224, 123, 57, 215], 4 * i);
      context.putImageData(image, 0, 0);
      c.drawImage(veil, box.x, box.y, box.w, box.h);
    }
    if (cut < 1 && cut > 0) {
      const x = box.x + cut * box.w;
      c.fillStyle = ink.panel;
      c.fillRect(x - 1.5, box.y, 3, box.h);
      c.beginPath();
      c.arc(x, box.y + box.h / 2, 10, 0, 7);
      c.fill();
      c.strokeStyle = ink.soft;
      c.lineWidth = 1;
      c.stroke();
      c.beginPath();
      for (const d of [-3, 3]) { c.moveTo(x + d * 0.6, box.y + box.h / 2 - 4);
        c.lineTo(x + d * 1.7, box.y + box.h / 2); c.lineTo(x + d * 0.6, box.y + box.h / 2 + 4); }
      c.stroke();
    }
    c.font = '600 12px system-ui, sans-serif';
    c.textBaseline = 'top';
    const tag = (word, x, align) => {
      const width = c.measureText(word).width + 12;
      const left = align === 'right' ? x - width : x;
      c.fillStyle = 'rgb(20 24 29 / 0.72)';
      c.fillRect(left, box.y + 8, width, 20);
      c.fillStyle = '#fff';
      c.textAlign = 'left';
      c.fillText(word, left + 6, box.y + 12);
    };
    if (cut > 0.12) tag(painted ? 'paint the hole' : 'before', box.x + 8, 'left');
    if (cut < 0.88) tag('after', box.x + box.w - 8, 'right');
  };
  const paintAt = (mask, x, y, box, erase) => {
    const [cx, cy, r] = [(x - box.x) / box.s, (y - box.y) / box.s, brush.value / 2];
    for (let i = Math.max(0, Math.floor(cy - r)); i <= Math.min(h - 1, cy + r); i += 1) {
      for (let j = Math.max(0, Math.floor(cx - r)); j <= Math.min(w - 1, cx + r); j += 1) {
        if ((i + 0.5 - cy) ** 2 + (j + 0.5 - cx) ** 2 <= r * r) mask[i * w + j] = erase ? 0 : 1;
      }
    }
    return mask;
  };
  const onPointer = (kind, x, y, event) => {
    const box = boxOf(event.currentTarget.clientWidth, event.currentTarget.clientHeight);
    const near = Math.abs(x - box.x - divide.value * box.w) < 16;
    if (kind === 'down') {
      event.currentTarget.setPointerCapture(event.pointerId);
      if (paints && !(near && !painted && a?.output && divide.value < 1)) {
        const old = run.settings[paints.name];
        const mask = painted ? painted.slice() : new Uint8Array(w * h);
        if (!painted && old?.width === w && old?.height === h) for (const [start, length] of old.runs) mask.fill(1,
          start, start + length);
        setPainted(paintAt(mask, x, y, box));
        setDragging('paint');
      } else setDragging('line');
    } else if (kind === 'move' && dragging === 'paint') setPainted(paintAt(painted.slice(), x, y, box));
    else if (kind === 'move' && dragging === 'line') divide.value = Math.max(0, Math.min(1, (x - box.x) / box.w));
    else if (kind === 'up' && dragging) {
      if (dragging === 'paint') set(run, paints.name, {width: w, height: h, runs: runsOf(painted)});
      setDragging(false);
    }
  };
  divide.value;
  const words = a?.output
    ? `The picture before and after; ${facts(frame.meta).map(([n, v]) => `${n} ${v}`).join(', ')}`
      : 'The picture before the run';
  return html`<${Board} draw=${draw} onPointer=${onPointer} label=${words} cursor=${paints ? 'crosshair' : 'ew-resize'}
    touch="none" />`;
}

const EXACT = 200; // decibels: the picture that was given is the original

function facts(meta) {
  const list = [];
  if (meta.psnr !== undefined) list.push(['quality', `${readNumber(meta.psnr)} dB`]);
  if (meta.psnr_input < EXACT) list.push(['before', `${readNumber(meta.psnr_input)} dB`]);
  if (meta.bytes !== undefined) list.push(['size', bytes(meta.bytes)]);
  if (meta.ratio !== undefined) list.push(['smaller by', `${readNumber(meta.ratio)} ×`]);
  return list;
}

/** The rate under the finger: asked at once, one question at a time. */
function Rate({run, setting}) {
  const [error, setError] = useState('');
  const waiting = useRef({busy: false, next: null});
  const now = dragged.value?.run === run.id ? dragged.value.rate : run.valueOf(setting);
  const low = Math.log(setting.min);
  const high = Math.log(setting.max);
  const go = async (rate) => {
    const w = waiting.current;
    w.next = rate;
    if (w.busy) return;
    w.busy = true;
    while (w.next !== null) {
      const wanted = w.next;
      w.next = null;
      try {
        const {arrays, meta} = await api.ask(run.id, {question: 'compress', rate: wanted});
        dragged.value = {run: run.id, rate: wanted, output: arrays.output, meta};
        setError('');
      } catch (e) {
        setError(e.message);
      }
    }
    w.busy = false;
  };
  return html`<div class="field"><label
    for="rate"><span>Drag the rate</span><output>${readNumber(now)} bits a pixel</output></label>
    <input id="rate" type="range" min="0" max="100" step="1" value=${(100 * (Math.log(now) - low)) / (high - low)}
      aria-valuetext=${`${readNumber(now)} bits a pixel`}
      onInput=${(e) => go(+Math.exp(low + ((high - low) * e.currentTarget.value) / 100).toPrecision(2))} />
    ${error && html`<p class="error" role="alert">${error}</p>`}</div>`;
}

function Details({run, frame}) {
  const rate = run.method.settings.find((s) => s.name === 'rate');
  const meta = dragged.value?.run === run.id ? dragged.value.meta : frame.meta;
  const paints = run.method.settings.find((s) => s.type === 'mask');
  return html`<h2>Before and after</h2>
    <dl class="facts">${facts(meta).map(([name, value]) => html`<div
      key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <div class="field"><label for="divide"><span>Line between them</span></label>
      <input id="divide" type="range" min="0" max="1" step="0.01" value=${divide.value}
        onInput=${(e) => { divide.value = +e.currentTarget.value; }} /></div>
    ${rate && run.answers && html`<${Rate} run=${run} setting=${rate} />`}
    ${paints && html`<h2>The hole</h2><p class="note">${paints.about}</p>
      <div class="field"><label for="brush"><span>Brush</span><output>${brush.value} pixels</output></label>
      <input id="brush" type="range" min="2" max="40" step="1" value=${brush.value}
        onInput=${(e) => { brush.value = +e.currentTarget.value; }} /></div>
      <button onClick=${() => set(run, paints.name, null)}
        disabled=${!run.settings[paints.name]}>Back to the hole it came with</button>`}`;
}

export default {Picture, Details, early: true,
  caption: ({meta}) => facts(meta).map(([n, v]) => `${n} ${v}`).join(', ')};
