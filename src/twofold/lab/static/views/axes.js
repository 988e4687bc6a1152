// Codes in the plane of the first two axes, the columns that make them, and any row rebuilt from its first numbers.
import {useEffect, useRef, useState} from 'preact/hooks';
import * as api from '../api.js';
import {drawGray} from '../heat.js';
import {html} from '../html.js';
import {colorOf} from '../palette.js';
import {Bars, Groups, Tip, tipAt} from '../parts.js';
import {PlotView, rangeOf} from '../plot.js';
import {hovered, selection} from '../state.js';
import {clip, percent, readNumber, wordsOf} from '../text.js';

const read = ({arrays}) => ({
  points: arrays.points.data, labels: arrays.colors?.data, rows: arrays.rows?.data, range: rangeOf(arrays.points.data),
});

function drawLoadings(c, {map, tween, ink, plot}, frame) {
  const {loadings} = frame.arrays;
  const {columns} = frame.meta;
  if (!loadings || !columns || loadings.shape[0] < 2) return;
  const d = loadings.shape[1];
  const values = tween('loadings');
  const length = (j) => Math.hypot(values[j], values[d + j]);
  const order = Array.from({length: d}, (_, j) => j).sort((p, q) => length(q) - length(p)).slice(0, 8);
  const [x0, x1, y0, y1] = plot.homeNow();
  const reach = (0.42 * Math.min(x1 - x0, y1 - y0)) / (length(order[0]) || 1);
  c.font = '11px system-ui, sans-serif';
  c.textBaseline = 'middle';
  for (const j of order.filter((one) => length(one) > 0.15 * length(order[0]))) {
    const [x, y] = [map.x(values[j] * reach), map.y(values[d + j] * reach)];
    c.globalAlpha = 0.35 + (0.6 * length(j)) / length(order[0]);
    c.strokeStyle = ink.ink;
    c.lineWidth = 1.2;
    c.beginPath();
    c.moveTo(map.x(0), map.y(0));
    c.lineTo(x, y);
    c.stroke();
    c.textAlign = x < map.x(0) ? 'right' : 'left';
    c.lineWidth = 3;
    c.strokeStyle = ink.panel;
    const word = clip(String(columns[j]), 22);
    const at = x + (x < map.x(0) ? -4 : 4);
    c.strokeText(word, at, y);
    c.fillStyle = ink.ink;
    c.fillText(word, at, y);
  }
  c.globalAlpha = 1;
}

export function Codes({run, frame, over, label}) {
  const [tip, setTip] = useState(null);
  const ratio = frame.arrays.ratio?.data;
  const name = (i) => frame.meta.axes?.[i] ?? (ratio && ratio.length > i ? `axis ${i + 1} (${percent(ratio[i])})`
    : `axis ${i + 1}`);
  return html`<${PlotView} run=${run} read=${read} over=${over} axes=${[name(0), name(1)]} onHover=${tipAt(setTip)}
    label=${label}><${Tip} tip=${tip} /><//>`;
}

function Picture({run, frame}) {
  const [a = 0, b = 0] = frame.arrays.ratio?.data ?? [];
  const top = a ? `; the first two axes hold ${percent(a + b)} of the variance` : '';
  return html`<${Codes} run=${run} frame=${frame} over=${(c, context) => drawLoadings(c, context, frame)}
    label=${`${wordsOf(frame.arrays.points.shape[0], 'row')} in the plane of the first two axes${top}`} />`;
}

/** One row and what the first m numbers of its code say of it: pictures side by side, or columns as pairs of dots. */
export function Reconstruct({run, frame}) {
  const most = Math.max(1,
    frame.meta.components ?? frame.arrays.ratio?.shape[0] ?? frame.arrays.loadings?.shape[0] ?? 2);
  const [k, setK] = useState(Math.min(2, most));
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState('');
  const row = selection.value.length ? selection.value[0] : hovered.value >= 0 ? hovered.value : 0;
  const done = run.answers;
  const turn = useRef(0);
  useEffect(() => {
    if (!done) return undefined;
    const mine = ++turn.current;
    const wait = setTimeout(async () => {
      try {
        const a = await api.ask(run.id, {question: 'reconstruct', row, k});
        if (mine === turn.current) { setAnswer(a); setError(''); }
      } catch (e) {
        if (mine === turn.current) setError(e.message);
      }
    }, 50);
    return () => clearTimeout(wait);
  }, [row, k, done]);
  if (!done) return html`<h2>One row again</h2><p class="note">${run.silence}</p>`;
  return html`<h2>One row again</h2>
    ${most > 1 && html`<div class="field"><label
      for="axes-k"><span>Axes used</span><output>${k} of ${most}</output></label>
      <input id="axes-k" type="range" min="1" max=${most} step="1" value=${k}
        onInput=${(e) => setK(+e.currentTarget.value)} /></div>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${answer && html`<p class="note">Row ${row}${answer.error !== undefined ? `, error ${readNumber(answer.error)}`
      : ''}. Hover or select another.</p>`}
    ${answer && (answer.shape ? html`<${Pictures} answer=${answer} row=${row} />` : html`<${Dots} answer=${answer}
      columns=${answer.columns ?? frame.meta.columns} />`)}`;
}

function Pictures({answer, row}) {
  const [h, w] = answer.shape;
  const low = Math.min(...answer.original);
  const high = Math.max(...answer.original);
  const canvases = [useRef(null), useRef(null)];
  useEffect(() => {
    [answer.original, answer.values].forEach((v, i) => {
      drawGray(canvases[i].current, Uint8ClampedArray.from(v, (x) => (255 * (x - low)) / (high - low || 1)), w, h);
    });
  });
  return html`<div class="pair">${['as it is', 'rebuilt'].map((word, i) => html`<figure key=${word}><canvas
    ref=${canvases[i]} width=${w} height=${h} role="img"
      aria-label=${`Row ${row} ${word}`}></canvas><figcaption>${word}</figcaption></figure>`)}</div>`;
}

function Dots({answer, columns}) {
  const list = answer.original.slice(0, 16);
  return html`<ul class="dots">${list.map((v, i) => {
    const [a, b] = [v, answer.values[i]];
    const span = answer.low ? [answer.low[i], answer.high[i]] : [Math.min(0, a, b), Math.max(0, a, b) || 1];
    const at = (x) => `${Math.max(0, Math.min(100, (100 * (x - span[0])) / (span[1] - span[0] || 1)))}%`;
    return html`<li key=${i}><span class="name">${clip(String(columns?.[i] ?? `column ${i + 1}`), 22)}</span>
      <span class="track"><i class="ring" style=${{left: at(a)}}></i><i class="dot"
        style=${{left: at(b), background: colorOf(1)}}></i></span>
      <span class="num">${readNumber(b)}</span></li>`;
  })}</ul><p class="note"><i class="ring still"></i> as it is, <i class="dot still"
    style=${{background: colorOf(1)}}></i> rebuilt</p>`;
}

function Details({run, frame}) {
  const {ratio} = frame.arrays;
  const {kept} = frame.meta;
  return html`${kept !== undefined && html`<dl
    class="facts"><div><dt>Variance that all axes keep</dt><dd>${percent(kept)}</dd></div></dl>`}
    ${ratio && html`<h2>Variance of each axis</h2><${Bars} values=${ratio.data} show=${percent} most=${8}
      label="Variance of each axis" />`}
    ${frame.arrays.colors && html`<h2>Colors</h2>`}<${Groups} run=${run} frame=${frame} labels=${frame.arrays.colors}
      given=${frame.meta.color_names ?? frame.meta.target_names} />
    <${Reconstruct} run=${run} frame=${frame} />`;
}

const caption = ({arrays}) => wordsOf(arrays.points.shape[0], 'row');

export default {Picture, Details, caption, plane: true, selectable: true};
