// A map of the items, and "would you like": a few stars of one's own, and what the model makes of them.
import {useEffect, useMemo, useState} from 'preact/hooks';
import * as api from '../api.js';
import {html} from '../html.js';
import {Icon} from '../icons.js';
import {Tip, tipAt} from '../parts.js';
import {PlotView, rangeOf} from '../plot.js';
import {clip, readNumber, wordsOf} from '../text.js';
import {placeWords} from '../words_on_map.js';

function read({arrays}) {
  const {items, counts} = arrays;
  const top = counts ? Math.max(...counts.data, 1) : 1;
  return {
    points: items.data, labels: new Uint8Array(items.shape[0]), range: rangeOf(items.data),
    sizes: counts ? Float32Array.from(counts.data, (c) => 0.5 + Math.sqrt(c / top)) : null,
  };
}

function Picture({run, frame}) {
  const [tip, setTip] = useState(null);
  const {titles = []} = frame.meta;
  const order = frame.arrays.counts
    ? Array.from(frame.arrays.counts.data.keys()).sort((a,
      b) => frame.arrays.counts.data[b] - frame.arrays.counts.data[a]) : null;
  const over = (c, context) => placeWords(c, context, context.tween('items'), titles, order, 40);
  return html`<${PlotView} run=${run} read=${read} over=${over} ticks=${false} inset=${[16, 16, 16, 16]}
    selectable=${false} alpha=${0.6} onHover=${tipAt(setTip)}
    label=${`A map of ${wordsOf(titles.length, 'item')}: near each other where the same people like them`}>
    <${Tip} tip=${tip} says=${tip && html`<b>${titles[tip.i]}</b><span>${frame.arrays.counts
      ? wordsOf(Math.round(frame.arrays.counts.data[tip.i]), 'rating') : ''}</span>`} /><//>`;
}

function Stars({title, value, onChange}) {
  return html`<span class="stars" role="group"
    aria-label=${`Stars for ${title}`}>${[1, 2, 3, 4, 5].map((n) => html`<button key=${n}
      class=${n <= value ? 'on' : ''}
    aria-pressed=${n === value} aria-label=${`${n} of 5`} onClick=${() => onChange(n)}>★</button>`)}</span>`;
}

function Details({run, frame}) {
  const [text, setText] = useState('');
  const [found, setFound] = useState([]);
  const [mine, setMine] = useState({});
  const [lists, setLists] = useState(null);
  const [error, setError] = useState('');
  const done = run.answers;
  const {titles = []} = frame.meta;
  useEffect(() => {
    if (!text.trim()) { setFound([]); return undefined; }
    setFound(titles.filter((t) => String(t).toLowerCase().includes(text.toLowerCase())).slice(0, 8));
    return undefined;
  }, [text]);
  useEffect(() => {
    if (!done || !Object.keys(mine).length) { setLists(null); return; }
    api.ask(run.id, {question: 'like', ratings: mine}).then((a) => { setLists(a.lists); setError(''); },
      (e) => setError(e.message));
  }, [mine, done]);
  const rate = (title, stars) => { setMine({...mine, [title]: stars}); setText(''); };
  const drop = (title) => { const {[title]: _, ...rest} = mine; setMine(rest); };
  const counts = frame.arrays.counts?.data;
  const known = useMemo(() => [...titles.keys()].sort((a, b) => (counts?.[b] ?? 0) - (counts?.[a] ?? 0)).slice(0,
    12).map((i) => titles[i]), [titles]);
  const offered = text ? found : known.filter((t) => !(t in mine)).slice(0, 4);
  return html`<h2>Would you like</h2>
    <input type="search" value=${text} onInput=${(e) => setText(e.currentTarget.value)}
      placeholder="Find something you know" aria-label="Find something you know" />
    <ul class="rated">${offered.filter((t) => !(t in mine)).slice(0, 8).map((t) => html`<li
      key=${t}><span>${clip(String(t), 60)}</span><${Stars} title=${t} value=${0}
        onChange=${(n) => rate(t, n)} /></li>`)}</ul>
    ${Object.keys(mine).length > 0 && html`<h2>Your stars</h2><ul
      class="rated">${Object.entries(mine).map(([t, n]) => html`<li key=${t}><span>${clip(t, 60)}</span>
      <${Stars} title=${t} value=${n} onChange=${(m) => rate(t, m)} /><button class="bare" aria-label=${`Forget ${t}`}
        onClick=${() => drop(t)}><${Icon} name="cross" /></button></li>`)}</ul>`}
    ${!done && Object.keys(mine).length > 0 && html`<p class="note">${run.silence}</p>`}
    ${lists && html`<h2>Then perhaps</h2><ol class="likes">${lists.slice(0, 10).map((l) => html`<li
      key=${l.title}><span class="num">${readNumber(l.score)}</span><b>${l.title}</b>${l.why && html`<span
        class="soft">${l.why}</span>`}</li>`)}</ol>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}`;
}

export default {Picture, Details, plane: true, caption: ({meta}) => wordsOf(meta.titles?.length ?? 0, 'item')};
