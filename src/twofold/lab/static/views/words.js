// A map of words: search it, ask for neighbors, and for the fourth word of an analogy.
import {signal} from '@preact/signals';
import {useEffect, useState} from 'preact/hooks';
import * as api from '../api.js';
import {html} from '../html.js';
import {colorOf} from '../palette.js';
import {Bars, Tip, tipAt} from '../parts.js';
import {PlotView, rangeOf} from '../plot.js';
import {wordsOf} from '../text.js';
import {placeWords} from '../words_on_map.js';

const chosen = signal(''); // shared by two runs: the same word in both maps
const near = signal({run: null, list: []}); // of the word, in one run

const read = ({arrays}) => ({points: arrays.map.data, labels: null, range: rangeOf(arrays.map.data)});

function Picture({run, frame}) {
  const [tip, setTip] = useState(null);
  const {words = []} = frame.meta;
  const marked = new Map();
  const mark = (word, color) => { const i = words.indexOf(word); if (i >= 0) marked.set(i, color); };
  mark(chosen.value, colorOf(1));
  if (near.value.run === run) near.value.list.slice(0, 10).forEach((n) => mark(n.word, colorOf(0)));
  const over = (c, context) => placeWords(c, context, context.tween('map'), words, null, 130, marked);
  return html`<${PlotView} run=${run} read=${read} over=${over} ticks=${false} inset=${[16, 48, 16, 16]}
    selectable=${false} alpha=${0.3} size=${3}
    onClick=${(i) => { chosen.value = i < 0 ? '' : words[i]; }} onHover=${tipAt(setTip)}
    label=${`A map of ${wordsOf(words.length, 'word')}: near each other where they are used alike`}>
    <${Tip} tip=${tip} says=${tip && html`<b>${words[tip.i]}</b>`} /><//>`;
}

function Details({run, frame}) {
  const {words = []} = frame.meta;
  const [text, setText] = useState('');
  const [found, setFound] = useState([]);
  const [three, setThree] = useState({a: '', b: '', c: ''});
  const [answers, setAnswers] = useState(null);
  const [error, setError] = useState('');
  const done = run.answers;
  useEffect(() => {
    if (!text.trim()) { setFound([]); return undefined; }
    const here = words.filter((w) => w.startsWith(text.toLowerCase())).slice(0, 6);
    setFound(here);
    if (here.length || !done) return undefined;
    const wait = setTimeout(() => api.ask(run.id, {question: 'search', text}).then(
      (a) => setFound((a.found ?? a.words ?? []).map((w) => w.word ?? w)), (e) => setError(e.message)), 150);
    return () => clearTimeout(wait);
  }, [text]);
  useEffect(() => {
    near.value = {run, list: []};
    if (!done || !chosen.value) return;
    api.ask(run.id, {question: 'neighbors', word: chosen.value}).then((a) => {
      if (near.value.run === run) near.value = {run, list: a.neighbors}; setError(''); }, (e) => setError(e.message));
  }, [chosen.value, done]);
  const solve = (event) => {
    event.preventDefault();
    api.ask(run.id, {question: 'analogy', ...three}).then((a) => { setAnswers(a.answers ?? a.neighbors);
      setError(''); }, (e) => { setAnswers(null); setError(e.message); });
  };
  const field = (key, place) => html`<input type="text" key=${key} value=${three[key]} placeholder=${place}
    aria-label=${`Analogy: ${place}`} onInput=${(e) => setThree({...three, [key]: e.currentTarget.value.trim()})} />`;
  const pick = (word) => { chosen.value = word; setText(''); };
  return html`<h2>Neighbors</h2>
    <input type="search" value=${text} onInput=${(e) => setText(e.currentTarget.value)} placeholder="Find a word"
      aria-label="Find a word"
      onKeyDown=${(e) => { if (e.key === 'Enter' && text.trim()) pick(found[0] ?? text.trim()); }} />
    ${text && html`<div class="buttons">${found.map((w) => html`<button key=${w}
      onClick=${() => pick(w)}>${w}</button>`)}</div>`}
    ${!chosen.value && !text && html`<div
      class="buttons">${words.filter((w) => w.length > 4).slice(0, 6).map((w) => html`<button key=${w}
        onClick=${() => pick(w)}>${w}</button>`)}</div>`}
    ${chosen.value && html`<p class="tally"><b>${chosen.value}</b> <button class="link"
      onClick=${() => { chosen.value = ''; }}>clear</button></p>`}
    ${!done && chosen.value && html`<p class="note">${run.silence}</p>`}
    ${near.value.run === run && near.value.list.length > 0 && html`<${Bars}
      values=${near.value.list.map((n) => n.score)} names=${near.value.list.map((n) => n.word)}
        show=${(v) => v.toFixed(2)} label=${`Words used like ${chosen.value}`} />`}
    <h2>Analogy</h2>
    <form class="analogy"
      onSubmit=${solve}>${field('a', 'row')}<span>is to</span>${field('b', 'rows')}<span>as</span>${field('c',
        'column')}<span>is to</span>
      <button type="submit" disabled=${!done || !three.a || !three.b || !three.c}>what?</button></form>
    ${answers && html`<${Bars} values=${answers.map((n) => n.similarity ?? n.score)}
      names=${answers.map((n) => n.word)} most=${5} show=${(v) => v.toFixed(2)} label="Answers" />`}
    ${error && html`<p class="error" role="alert">${error}</p>`}`;
}

export default {Picture, Details, plane: true, caption: ({meta}) => wordsOf(meta.words?.length ?? 0, 'word')};
