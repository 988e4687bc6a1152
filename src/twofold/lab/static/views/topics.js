// Topics: their words settling, a map of the documents, and the documents behind each topic.
import {computed, signal} from '@preact/signals';
import {useEffect, useState} from 'preact/hooks';
import * as api from '../api.js';
import {html} from '../html.js';
import {colorOf} from '../palette.js';
import {Tip, tipAt} from '../parts.js';
import {PlotView, rangeOf} from '../plot.js';
import {comparing} from '../state.js';
import {clip, percent, wordsOf} from '../text.js';

const chosen = signal(-1);
const narrow = computed(() => comparing.value);

const read = ({arrays}) => ({
  points: arrays.documents?.data ?? new Float32Array(0), labels: arrays.labels?.data, rows: arrays.rows?.data,
  range: rangeOf(arrays.documents?.data, arrays.map?.data),
});

function Words({topics, sizes}) {
  return html`<div class="topics" role="list">${topics.map((words, t) => {
    const top = Math.max(...words.map((w) => w.weight), 1e-12);
    return html`<div role="listitem" key=${t} class=${`topic ${chosen.value === t ? 'on' : ''}`}>
      <button onClick=${() => { chosen.value = chosen.value === t ? -1 : t; }} aria-pressed=${chosen.value === t}>
        <i style=${{background: colorOf(t)}}></i>topic ${t + 1}<span class="num">${sizes ? percent(sizes.data[t])
          : ''}</span></button>
      <ol>${words.slice(0, narrow.value || topics.length > 9 ? 5 : topics.length > 6 ? 6 : topics.length > 4 ? 9
        : 12).map(({word, weight}) => html`<li key=${word}><i
          style=${{width: `${(100 * weight) / top}%`, background: `${colorOf(t)}44`}}></i><span>${clip(word,
            18)}</span></li>`)}</ol>
    </div>`;
  })}</div>`;
}

function Picture({run, frame}) {
  const [tip, setTip] = useState(null);
  const {topics = []} = frame.meta;
  const shares = shareOf(frame.arrays.sizes);
  const over = (c, {map, tween, ink}) => {
    const centers = tween('map');
    if (!centers) return;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    for (let t = 0; t < topics.length; t += 1) {
      const [x, y] = [map.x(centers[2 * t]), map.y(centers[2 * t + 1])];
      const r = 9 + 26 * Math.sqrt(shares ? shares.data[t] : 0.1);
      c.beginPath();
      c.arc(x, y, r, 0, 7);
      c.fillStyle = `${colorOf(t)}${chosen.value === t ? '66' : '2a'}`;
      c.fill();
      c.lineWidth = chosen.value === t ? 2.5 : 1.2;
      c.strokeStyle = colorOf(t);
      c.stroke();
      c.font = '600 12px system-ui, sans-serif';
      c.lineWidth = 3;
      c.strokeStyle = ink.panel;
      c.strokeText(String(t + 1), x, y);
      c.fillStyle = ink.ink;
      c.fillText(String(t + 1), x, y);
    }
  };
  chosen.value;
  return html`<div class="split"><${Words} topics=${topics} sizes=${shares} />
    <${PlotView} run=${run} read=${read} over=${over} ticks=${false} equal=${false} inset=${[30, 30, 30, 30]}
      alpha=${0.6} size=${4.5} onHover=${tipAt(setTip)}
      label=${`A map of the documents and ${wordsOf(topics.length, 'topic')}`}><${Tip} tip=${tip} /><//></div>`;
}

/** Sizes as shares of the whole, whatever unit they come in. */
function shareOf(sizes) {
  if (!sizes) return null;
  const sum = sizes.data.reduce((a, b) => a + b, 0) || 1;
  return {data: sizes.data.map((v) => v / sum)};
}

function Details({run, frame}) {
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState('');
  const {topics = []} = frame.meta;
  const topic = chosen.value < topics.length ? chosen.value : -1;
  const done = run.answers;
  useEffect(() => {
    setAnswer(null);
    if (topic < 0 || !done) return;
    api.ask(run.id, {question: 'documents', topic}).then((a) => { setAnswer(a); setError(''); },
      (e) => setError(e.message));
  }, [topic, done]);
  if (topic < 0) return html`<h2>Documents</h2><p class="note">Choose a topic to read the documents behind it.</p>`;
  return html`<h2>Topic ${topic + 1}</h2>
    <p class="about">${topics[topic].map((w) => w.word).join(', ')}</p>
    ${!done && html`<p class="note">${run.silence}</p>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <ul class="documents">${answer?.documents.map((d, i) => html`<li
      key=${i}><b>${clip(d.name ?? `document ${i + 1}`, 60)}</b><span
        class="num">${percent(d.share)}</span><p>${clip(d.text, 260)}</p></li>`)}</ul>`;
}

const caption = ({meta, arrays}) => `${wordsOf(arrays.documents?.shape[0] ?? 0,
  'document')}, ${wordsOf(meta.topics?.length ?? 0, 'topic')}`;

export default {Picture, Details, caption, plane: true, selectable: true};
