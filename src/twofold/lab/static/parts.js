// Parts that several views share: small pictures, rows of the data, groups, what is shown beside the pointer, bars.
import {useEffect, useRef, useState} from 'preact/hooks';
import * as api from './api.js';
import {drawGray} from './heat.js';
import {html} from './html.js';
import {colorOf} from './palette.js';
import {data, selection} from './state.js';
import {brief, clip, percent, readNumber} from './text.js';

/** Small gray pictures (one after the other in `bytes`) as canvases. */
export function Thumb({bytes, shape, at = 0, size = 40, label = ''}) {
  const canvas = useRef(null);
  const [h, w] = shape;
  useEffect(() => { drawGray(canvas.current, bytes.subarray(at * h * w, (at + 1) * h * w), w, h); }, [bytes, at]);
  return html`<canvas class="thumb" ref=${canvas} width=${w} height=${h} role="img" aria-label=${label}
    style=${{width: `${size}px`, height: `${Math.round((size * h) / w)}px`}}></canvas>`;
}

/** Rows of the data, asked once and kept. */
const cache = new Map();
export async function rowsOf(id, at) {
  const key = `${id}/${at.join(',')}`;
  if (!cache.has(key)) {
    if (cache.size > 200) cache.clear();
    cache.set(key, api.get(`/api/data/${encodeURIComponent(id)}/rows?at=${at.join(',')}`).then((answer) => {
      if (answer.pictures) answer.pictures.bytes = api.bytesOf(answer.pictures.data);
      return answer;
    }));
  }
  return cache.get(key);
}

/** Groups of a frame with their sizes; a name of one's own; a click selects the rows. */
export function Groups({run, frame, labels = frame.arrays.labels ?? frame.arrays.colors, given, editable = false}) {
  if (!labels) return null;
  const {groupNames} = run;
  const counts = new Map();
  for (const label of labels.data) counts.set(label, (counts.get(label) ?? 0) + 1);
  if (counts.size === 1 && counts.has(255)) return null;
  const rows = frame.arrays.rows?.data;
  const all = [...counts].sort((a, b) => a[0] - b[0]).slice(0, 24);
  const pick = (label) => {
    const found = [];
    labels.data.forEach((l, i) => { if (l === label) found.push(rows ? rows[i] : i); });
    selection.value = Int32Array.from(found).sort();
  };
  return html`<ul class="groups">${all.map(([label, count]) => {
    const word = label === 255 ? 'none' : given?.[label] ?? `group ${label + 1}`;
    return html`<li key=${label}>
      <button class="swatch" style=${{background: colorOf(label)}} onClick=${() => pick(label)}
        aria-label=${`Select the ${count} rows of ${groupNames.value[label] || word}`}></button>
      ${editable && label !== 255
        ? html`<input type="text" value=${groupNames.value[label] ?? ''} placeholder=${word}
          aria-label=${`Name of ${word}`} maxlength="60"
            onInput=${(e) => { groupNames.value = {...groupNames.value, [label]: e.currentTarget.value}; }} />`
        : html`<span>${word}</span>`}
      <span class="soft num">${count.toLocaleString('en-US')} · ${percent(count / labels.data.length)}</span></li>`;
  })}</ul>`;
}

/** Words beside the pointer: the row behind a point, or what the view says of it. */
export function Tip({tip, says}) {
  const [answer, setAnswer] = useState(null);
  const row = tip && !says ? tip.row : -1;
  useEffect(() => {
    setAnswer(null);
    if (row < 0 || !data.value || data.value.kind === 'none') return undefined;
    let current = true;
    const wait = setTimeout(() => rowsOf(data.value.id, [row]).then((a) => current && setAnswer(a), () => {}), 60);
    return () => { current = false; clearTimeout(wait); };
  }, [row]);
  if (!tip) return null;
  const flip = tip.x > tip.width - 210;
  const style = {left: flip ? 'auto' : `${tip.x + 12}px`, right: flip ? `${tip.width - tip.x + 12}px`
    : 'auto', top: `${Math.max(4, tip.y - 12)}px`};
  return html`<div class="tip" aria-hidden="true" style=${style}>
    ${says ?? html`<b>row ${row}</b>
      ${answer?.pictures && html`<${Thumb} bytes=${answer.pictures.bytes} shape=${answer.pictures.shape} size=${64} />`}
      ${answer && !answer.pictures && html`<dl>${answer.columns.slice(0, 7).map((c, i) => html`<div
        key=${i}><dt>${clip(c, 20)}</dt><dd>${brief(String(answer.rows[0]?.[i] ?? ''))}</dd></div>`)}</dl>`}`}
  </div>`;
}

/** What a plot says when the pointer comes near a point, as the place of a tip. */
export const tipAt = (setTip) => (i, at, plot) => setTip(i < 0 || !at ? null
  : {i, row: plot.rowOf(i), x: at[0], y: at[1], width: plot.w});

/** Shares or sizes as bars, with their words. */
export function Bars({values, names, color = 0, most = 12, label, show = readNumber}) {
  const list = Array.from(values).slice(0, most);
  const top = Math.max(...list.map(Math.abs), 1e-30);
  return html`<ul class="bars" aria-label=${label}>${list.map((v, i) => html`<li key=${i}><span
    class="name">${names ? names[i] : i + 1}</span>
    <span class="bar"><i style=${{width: `${(100 * Math.abs(v)) / top}%`, background: colorOf(color)}}></i></span><span
      class="num">${show(v)}</span></li>`)}</ul>`;
}
