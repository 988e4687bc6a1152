// What the page shows, and its two ways to the world: the fragment of the address, and the jobs of the server.
//
// The page shows one run, or two side by side. A run owns its data, method, settings, rows, frames and downloads, and
// none of these ever changes: a choice makes a new run, which is shown in place of the old one.
import {batch, computed, effect, signal} from '@preact/signals';
import * as api from './api.js';
import {choice, setColors} from './palette.js';
import {Run} from './run.js';
import {decodeRows, encodeRows, maskOf, readNumber, wordsOf} from './text.js';

export const catalog = signal(null);
export const jobs = signal([]);
export const online = signal(true);
export const trouble = signal(''); // one sentence about the page as a whole
export const status = signal(''); // what a screen reader hears
export const help = signal(''); // the sentence of the docs for the control in hand

export const shown = signal([]); // one run, or two; none on the first page
export const inHand = signal(0); // which of the two the controls concern
export const comparing = computed(() => shown.value.length > 1);
export const run = computed(() => shown.value[inHand.value] ?? shown.value[0] ?? null);
export const data = computed(() => shown.value[0]?.data ?? null);
export const story = signal(null); // that led here

export const selection = signal(new Int32Array(0)); // rows of the data
export const hovered = signal(-1);
export const names = signal([]); // [{name, rows}]
export const camera = signal({zoom: 1, x: 0, y: 0}); // shared by the pictures: linked axes
export const tool = signal(matchMedia('(pointer: coarse)').matches ? 'look' : 'lasso');

export const picked = computed(() => {
  const rows = selection.value;
  const mask = new Uint8Array(rows.length ? rows[rows.length - 1] + 1 : 0);
  for (const row of rows) mask[row] = 1;
  return mask;
});

export const methodOf = (id) => catalog.value?.methods.find((m) => m.id === id);
export const dataOf = (id) => catalog.value?.data.find((d) => d.id === id);
/** Why a method cannot take the data, in a few words; '' if it can. */
export const reasonAgainst = (method, d) => d.unfit[method.id] ?? '';
export const fits = (method, d) => !reasonAgainst(method, d);
const startOf = (d) => methodOf(d.start);

// What is shown. -------------------------------------------------------------------------------------------------

let stream = null;
const watch = () => stream?.watch(shown.value.map((r) => r.id).filter(Boolean));
const runOf = (id) => shown.value.find((r) => r.id === id);

/** Shows these runs; what belonged to other data, or to another plane, is forgotten. */
function show(runs) {
  batch(() => {
    const before = shown.value;
    const [old, now] = [before[0], runs[0]];
    if (old?.data.id !== now?.data.id) {
      selection.value = new Int32Array(0);
      names.value = [];
    }
    if (old?.data.id !== now?.data.id || old?.method !== now?.method) camera.value = {zoom: 1, x: 0, y: 0};
    hovered.value = -1;
    trouble.value = '';
    for (const r of before) if (!runs.includes(r)) r.close();
    shown.value = runs;
    inHand.value = Math.min(inHand.value, Math.max(0, runs.length - 1));
  });
  watch();
}

const inPlace = (old, now) => shown.value.map((r) => (r === old ? now : r));

/** Starts the runs that have no job yet; in a moment, if more changes are likely. */
function begin(runs, after = 0) {
  const go = () => runs.forEach(async (r) => {
    if (r.closed || r.id || r.begun) return;
    r.begun = true;
    await r.start();
    watch();
  });
  if (after) setTimeout(go, after);
  else go();
}

function showNew(runs, after = 0) {
  if (runs.some((r) => !shown.value.includes(r))) story.value = null;
  show(runs);
  begin(runs, after);
}

export function choose(methodId) {
  const old = run.value;
  const method = methodOf(methodId);
  if (!method || !old || !fits(method, old.data)) return;
  showNew(inPlace(old, new Run({data: old.data, method, rows: old.rows})));
}

/** Other data: each method stays if it can take it, else one that suits the data is shown. */
export function useData(id) {
  const d = dataOf(id);
  if (!d) return;
  const kept = shown.value.filter((r) => fits(r.method, d)).map((r) => {
    const {mask: _, ...settings} = r.settings;
    return new Run({data: d, method: r.method, settings});
  });
  if (!kept.length && !startOf(d)) trouble.value = `No method of the lab takes ${d.name}.`;
  else showNew(kept.length ? kept : [new Run({data: d, method: startOf(d)})]);
}

export function set(old, name, value) {
  const {data: d, method, rows, settings} = old;
  const now = new Run({data: d, method, rows, settings: {...settings, [name]: value}});
  showNew(inPlace(old, now), 150);
}

export function runAgain(old) {
  showNew(inPlace(old, new Run(old)));
}

export function compareWith(methodId) {
  const [left] = shown.value;
  const method = methodOf(methodId);
  if (!method) { inHand.value = 0; show([left]); return; }
  const settings = method === left.method ? left.settings : {};
  showNew([left, new Run({data: left.data, method, settings, rows: left.rows})]);
  inHand.value = 1;
}

/** Runs on some rows alone; on all of them if none are given. */
export function fitOn(rows) {
  selection.value = new Int32Array(0);
  showNew(shown.value.map(({data: d, method, settings}) => new Run({data: d, method, settings, rows})));
}

let reading = Promise.resolve();

/** Files are sent one after the other, so that they leave the browser connections for all else. */
export function take(file) {
  reading = reading.then(() => bring(file));
}

async function bring(file) {
  trouble.value = '';
  status.value = `Reading ${file.name}.`;
  try {
    const entry = await api.upload(file);
    catalog.value = {...catalog.value, data: (await api.get('/api/catalog')).data};
      // files of long ago make room for new ones
    useData(entry.id);
  } catch (error) {
    trouble.value = error.message;
    status.value = error.message;
  }
}

/** The choice that a job of the server was made of. */
function runFrom(state) {
  const [d, method] = [dataOf(state.data), methodOf(state.method)];
  return d && method ? new Run({data: d, method, settings: state.settings, rows: state.rows}, state) : null;
}

/** A run of before, shown again as it was. */
export function reopen(state) {
  const again = runFrom(state);
  if (!again) return;
  inHand.value = 0;
  show([again]);
  if (again.kept.length) again.show(again.kept.at(-1));
}

function onState(state) {
  const one = runOf(state.id);
  if (!one) return;
  const before = one.state.value?.status;
  one.onState(state);
  if (state.status !== before) announce(one);
}

function announce(one) {
  const state = one.state.value;
  const last = state.objective?.at(-1);
  const value = typeof last === 'number'
    ? `, ${(state.objective_name || 'objective').toLowerCase()} ${readNumber(last)}` : '';
  const sentence = {
    waiting: 'waits for a free process', running: 'is running', paused: 'is paused', stopped: 'was stopped',
    done: `is done after ${wordsOf(state.sweep, 'sweep')}${value}`, failed: `failed: ${state.message}`,
  }[state.status] ?? `was ${state.status}`;
  status.value = `${one.method.title} on ${one.data.name} ${sentence}.`;
}

// The address. --------------------------------------------------------------------------------------------------

const LONG = 1800; // an address stays one that can be sent
const PREFIX = ['', 'right.']; // of the settings of each run

function write() {
  const parts = [];
  const put = (key, value) => parts.push(`${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
  const putRows = (key, rows, before = '') => {
    const written = rows?.length ? before + encodeRows(rows) : '';
    if (written && written.length < LONG) put(key, written);
  };
  if (data.value) put('data', data.value.id);
  shown.value.forEach((one, i) => {
    put(i ? 'right' : 'method', one.method.id);
    for (const setting of one.method.settings) {
      const value = one.settings[setting.name];
      if (value === undefined || value === null || value === setting.default) continue;
      const written = setting.type === 'mask' ? maskOf(value) : String(value);
      if (written.length < LONG) put(PREFIX[i] + setting.name, written);
    }
    if (one.id) put(`${PREFIX[i]}job`, one.id);
    const at = one.frame.value?.index ?? one.wanted;
    if (!one.playing.value && at !== null) put(`${PREFIX[i]}at`, at);
    for (const [label, name] of Object.entries(one.groupNames.value)) if (name) put(`${PREFIX[i]}group.${label}`, name);
  });
  putRows('rows', data.value && shown.value[0].rows);
  putRows('selected', selection.value);
  for (const {name, rows} of names.value) putRows('named', rows, `${name}:`);
  const {zoom, x, y} = camera.value;
  if (zoom !== 1 || x || y) put('view', [zoom, x, y].map((v) => +v.toFixed(4)).join(','));
  if (story.value) put('story', story.value.id);
  if (choice.value !== 'auto') put('theme', choice.value);
  return parts.join('&');
}

let written = '';
let timer = 0;
const jobsIn = (text) => [...text.matchAll(/job=(\w+)/g)].join();

/** Writes the address; a run in place of another is a step that the browser can go back. */
function remember() {
  const text = write(); // read here, so that the effect follows all it is made of
  const whole = shown.value.every((r) => r.id || r.error.value);
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (text === written || !whole) return;
    const step = jobsIn(text) !== jobsIn(written) && jobsIn(written) !== '';
    history[step ? 'pushState' : 'replaceState'](null, '', text ? `#${text}` : location.pathname);
    written = text;
  }, 120);
}

const valueFrom = (setting, text) => {
  if (setting.type === 'int' || setting.type === 'float') return Number(text);
  if (setting.type === 'bool') return text === 'true';
  if (setting.type === 'mask') return maskOf.read(text);
  return setting.choices?.find((c) => String(c) === text) ?? setting.default;
};

/** The run that an address names: its job if the server has it, else a new one of the same choice. */
function runIn(query, i, d, rows) {
  const asked = methodOf(query.get(i ? 'right' : 'method'));
  if (asked && !fits(asked, d)) trouble.value = `${asked.title}: ${d.name} ${reasonAgainst(asked, d)}.`;
  const method = asked && fits(asked, d) ? asked : i ? null : startOf(d);
  if (!method) return null;
  const known = jobs.value.find((j) => j.id === query.get(`${PREFIX[i]}job`) && j.method === method.id
    && j.data === d.id);
  const held = known && shown.value.find((r) => r.id === known.id);
  const settings = {};
  for (const setting of method.settings) {
    const text = query.get(PREFIX[i] + setting.name);
    if (text !== null) settings[setting.name] = valueFrom(setting, text);
  }
  const one = held ?? (known ? runFrom(known) : new Run({data: d, method, settings, rows}));
  const at = query.get(`${PREFIX[i]}at`);
  if (at !== null && known) one.playing.value = false;
  else if (at !== null) one.until = at === 'end' ? Infinity : +at;
  const {kept} = one;
  if (known && kept.length) one.show(at !== null && kept.includes(+at) ? +at : kept.at(-1));
  one.groupNames.value = Object.fromEntries(
    [...query].filter(([key]) => key.startsWith(`${PREFIX[i]}group.`)).map(([key, name]) =>
      [key.slice(key.lastIndexOf('.') + 1), name]),
  );
  return one;
}

function read(fragment) {
  const query = new URLSearchParams(fragment);
  const d = dataOf(query.get('data')) ?? dataOf(methodOf(query.get('method'))?.default_data);
  const rows = query.get('rows') ? decodeRows(query.get('rows')) : null;
  choice.value = ['light', 'dark'].includes(query.get('theme')) ? query.get('theme') : 'auto';
  if (query.has('data')
    && !dataOf(query.get('data'))) trouble.value = 'The data of this address is not in this lab. Bring the file again.';
  const runs = d ? [0, 1].map((i) => runIn(query, i, d, rows)).filter(Boolean) : [];
  batch(() => {
    const said = trouble.value;
    show(runs);
    trouble.value = said;
    story.value = catalog.value.stories.find((s) => s.id === query.get('story')) ?? null;
    selection.value = query.get('selected') ? decodeRows(query.get('selected')) : new Int32Array(0);
    names.value = query.getAll('named').map((text) => {
      const cut = text.lastIndexOf(':');
      return {name: text.slice(0, cut), rows: decodeRows(text.slice(cut + 1))};
    });
    const view = (query.get('view') ?? '').split(',').map(Number);
    camera.value = view.length === 3 && view.every(Number.isFinite) && view[0] > 0
      ? {zoom: view[0], x: view[1], y: view[2]} : {zoom: 1, x: 0, y: 0};
  });
  begin(runs);
}

export async function open() {
  try {
    const [all, found] = await Promise.all([api.get('/api/catalog'), api.get('/api/jobs')]);
    setColors(all.colors);
    catalog.value = all;
    jobs.value = found;
  } catch (error) {
    trouble.value = error.message;
    return;
  }
  if (api.replay) {
    read(api.replay.address);
    shown.value[0]?.play();
    return;
  }
  stream = new api.Stream(onState, (frame) => runOf(frame.job)?.onFrame(frame), (up) => { online.value = up; });
  written = location.hash.slice(1);
  read(written);
  effect(remember);
  addEventListener('popstate', async () => {
    clearTimeout(timer);
    const text = location.hash.slice(1);
    if (text === written) return;
    written = text;
    await refreshJobs();
    if (text === written) read(text);
  });
}

export async function refreshJobs() {
  try {
    jobs.value = await api.get('/api/jobs');
  } catch { /* the stream says that the lab is away */ }
}
