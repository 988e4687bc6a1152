// The whole state of the page, and its two ways to the world: the fragment of the address, and the jobs of the server.
import {batch, computed, effect, signal} from '@preact/signals';
import * as api from './api.js';
import {choice} from './palette.js';
import {Run} from './run.js';
import {decodeRows, encodeRows, maskOf, readNumber, wordsOf} from './text.js';

export const catalog = signal(null);
export const jobs = signal([]);
export const online = signal(true);
export const trouble = signal(''); // one sentence about the page as a whole
export const status = signal(''); // what a screen reader hears
export const help = signal(''); // the sentence of the docs for the control in hand

export const dataId = signal('');
export const subset = signal(null); // rows the fit is restricted to
export const selection = signal(new Int32Array(0)); // rows of the data
export const hovered = signal(-1);
export const names = signal([]); // [{name, rows}]
export const groupNames = signal({}); // label → name
export const camera = signal({zoom: 1, x: 0, y: 0}); // shared by the pictures: linked axes
export const tool = signal(matchMedia('(pointer: coarse)').matches ? 'look' : 'lasso');
export const inHand = signal(0); // which of the two runs the controls concern

export const picked = computed(() => {
  const rows = selection.value;
  const mask = new Uint8Array(rows.length ? rows[rows.length - 1] + 1 : 0);
  for (const row of rows) mask[row] = 1;
  return mask;
});

export const methodOf = (id) => catalog.value?.methods.find((m) => m.id === id);
export const dataOf = (id) => catalog.value?.data.find((d) => d.id === id);
export const data = computed(() => dataOf(dataId.value));
export const fits = (method, kind) => method.kinds.includes(kind);

/** One of the two runs: a method, its settings, and the job that is shown. */
class Side {
  constructor(key) {
    this.key = key; // '' or 'right.': the prefix of its settings in the address
    this.methodId = signal('');
    this.settings = signal({});
    this.run = signal(null);
    this.error = signal('');
    this.starting = signal(false);
    this.method = computed(() => methodOf(this.methodId.value));
  }

  /** Settings the server needs: those that differ from the defaults would do, but all are plainer. */
  full() {
    const all = {};
    for (const s of this.method.value.settings) {
      const value = this.settings.value[s.name] ?? s.default;
      if (value !== null && value !== undefined) all[s.name] = value;
    }
    return all;
  }

  set(name, value, start = true) {
    this.settings.value = {...this.settings.value, [name]: value};
    if (start) this.soon();
  }

  soon() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.start(), 150);
  }

  async start() {
    clearTimeout(this.later);
    if (!this.method.value || !data.value) return;
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.error.value = '';
    this.starting.value = true;
    const body = {data: dataId.value, method: this.methodId.value, settings: this.full()};
    if (subset.value) body.rows = Array.from(subset.value);
    this.run.value?.close();
    try {
      const {id} = await api.post('/api/jobs', body);
      if (turn !== this.turn) api.post(`/api/jobs/${id}/cancel`).catch(() => {});
      else this.show(new Run(id, null));
    } catch (error) {
      if (turn === this.turn) {
        this.error.value = error.message;
        status.value = error.message;
      }
    }
    if (turn === this.turn) this.starting.value = false;
  }

  show(run) {
    const old = this.run.value;
    if (old && old !== run) old.close();
    this.run.value = run;
    watch();
  }

  /** Leaves the run: its frames are those of one method on one set of data, and no other view can draw them. */
  drop() {
    this.run.value?.close();
    this.run.value = null;
  }

  clear() {
    this.turn = (this.turn ?? 0) + 1;
    batch(() => {
      this.drop();
      this.methodId.value = '';
      this.settings.value = {};
      this.error.value = '';
    });
    watch();
  }
}

export const left = new Side('');
export const right = new Side('right.');
export const sides = [left, right];
export const comparing = computed(() => right.methodId.value !== '');
export const shown = computed(() => (comparing.value ? sides : [left]));
export const side = computed(() => (comparing.value ? sides[inHand.value] : left));

const NOTHING = {id: 'none', name: 'made by the method', kind: 'none', about: 'The method makes its own.', shape: null};

let stream = null;
function watch() {
  stream?.watch(sides.map((s) => s.run.value?.id).filter(Boolean));
}
const runOf = (id) => sides.map((s) => s.run.value).find((run) => run?.id === id);

function onState(state) {
  const run = runOf(state.id);
  if (!run) return;
  const before = run.state.value?.status;
  run.onState(state);
  if (state.status !== before) announce(state);
}

function announce(state) {
  const title = methodOf(state.method)?.title ?? state.method;
  const on = dataOf(state.data)?.name ?? state.data;
  const last = state.objective?.at(-1);
  const value = typeof last === 'number' ? `, ${(state.objective_name || 'objective').toLowerCase()} ${readNumber(last)}` : '';
  const sentence = {
    waiting: 'waits for a free process', running: 'is running', paused: 'is paused',
    done: `is done after ${wordsOf(state.sweep, 'sweep')}${value}`, failed: `failed: ${state.message}`, cancelled: 'was stopped',
  }[state.status];
  status.value = `${title} on ${on} ${sentence}.`;
}

export function choose(methodId) {
  const method = methodOf(methodId);
  if (!method) return;
  batch(() => {
    const current = side.value;
    current.drop();
    current.methodId.value = methodId;
    current.settings.value = {};
    camera.value = {zoom: 1, x: 0, y: 0};
    groupNames.value = {};
    if (!data.value || !fits(method, data.value.kind)) useData(dataFor(method), false);
  });
  startDropped();
}

function startDropped() {
  for (const s of shown.value) if (!s.run.value) s.start();
}

/** Data for a method: what it likes best, or else the first it can take. */
function dataFor(method) {
  return dataOf(method.default_data)?.id ?? catalog.value.data.find((d) => fits(method, d.kind))?.id ?? '';
}

export function useData(id, start = true) {
  batch(() => {
    dataId.value = id;
    subset.value = null;
    selection.value = new Int32Array(0);
    names.value = [];
    groupNames.value = {};
    hovered.value = -1;
    camera.value = {zoom: 1, x: 0, y: 0};
    for (const s of sides) {
      if (!s.method.value) continue;
      s.drop();
      if (s.methodId.value && 'mask' in s.settings.value) s.settings.value = {...s.settings.value, mask: null};
      if (!fits(s.method.value, data.value.kind)) {
        if (s === right) s.clear();
        else {
          s.methodId.value = catalog.value.methods.find((m) => fits(m, data.value.kind))?.id ?? '';
          s.settings.value = {};
        }
      }
    }
  });
  if (start) for (const s of shown.value) s.start();
}

export function compareWith(methodId) {
  if (!methodId) {
    right.clear();
    inHand.value = 0;
    return;
  }
  batch(() => {
    right.drop();
    right.methodId.value = methodId;
    right.settings.value = methodId === left.methodId.value ? {...left.settings.value} : {};
    inHand.value = 1;
  });
  right.start();
}

export function fitOn(rows) {
  subset.value = rows;
  selection.value = new Int32Array(0);
  for (const s of shown.value) s.start();
}

export async function take(file) {
  trouble.value = '';
  status.value = `Reading ${file.name}.`;
  try {
    const entry = await api.upload(file);
    catalog.value = {...catalog.value, data: [...catalog.value.data.filter((d) => d.id !== entry.id), entry]};
    useData(entry.id);
  } catch (error) {
    trouble.value = error.message;
    status.value = error.message;
  }
}

/** A job of an earlier visit, shown again as it was. */
export function reopen(state) {
  batch(() => {
    if (dataId.value !== state.data) useData(state.data, false);
    left.methodId.value = state.method;
    left.settings.value = {...state.settings};
    left.show(new Run(state.id, state));
  });
  startDropped();
}

// The address. --------------------------------------------------------------------------------------------------

const LONG = 1800; // an address stays one that can be sent

function write() {
  const parts = [];
  const put = (key, value) => parts.push(`${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
  if (dataId.value) put('data', dataId.value);
  for (const s of shown.value) {
    if (!s.methodId.value) continue;
    put(s === left ? 'method' : 'right', s.methodId.value);
    for (const setting of s.method.value?.settings ?? []) {
      const value = s.settings.value[setting.name];
      if (value === undefined || value === null || value === setting.default) continue;
      const written = setting.type === 'mask' ? maskOf(value) : String(value);
      if (written.length < LONG) put(s.key + setting.name, written);
    }
    if (s.run.value) put(`${s.key}job`, s.run.value.id);
    const run = s.run.value;
    const at = run?.frame.value?.index ?? run?.wanted;
    if (run && !run.playing.value && at !== null) put(`${s.key}at`, at);
  }
  for (const [key, rows] of [['rows', subset.value], ['selected', selection.value]]) {
    const written = rows?.length ? encodeRows(rows) : '';
    if (written && written.length < LONG) put(key, written);
  }
  for (const {name, rows} of names.value) {
    const written = `${name}:${encodeRows(rows)}`;
    if (written.length < LONG) put('named', written);
  }
  for (const [label, name] of Object.entries(groupNames.value)) if (name) put(`group.${label}`, name);
  const {zoom, x, y} = camera.value;
  if (zoom !== 1 || x || y) put('view', [zoom, x, y].map((v) => +v.toFixed(4)).join(','));
  if (choice.value !== 'auto') put('theme', choice.value);
  return parts.join('&');
}

let written = null;
let timer = 0;
function remember() {
  const text = write(); // read here, so that the effect follows all it is made of
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (text === written) return;
    written = text;
    history.replaceState(null, '', `#${text}`);
  }, 120);
}

const valueOf = (setting, text) => {
  if (setting.type === 'int' || setting.type === 'float') return Number(text);
  if (setting.type === 'bool') return text === 'true';
  if (setting.type === 'mask') return maskOf.read(text);
  return setting.choices?.find((c) => String(c) === text) ?? setting.default;
};

function read(fragment) {
  const query = new URLSearchParams(fragment);
  const known = (id) => (methodOf(id) ? id : '');
  const runs = [];
  batch(() => {
    choice.value = ['light', 'dark'].includes(query.get('theme')) ? query.get('theme') : 'auto';
    const fallback = query.get('data') && catalog.value.methods.find((m) => fits(m, dataOf(query.get('data'))?.kind))?.id;
    left.methodId.value = known(query.get('method')) || fallback || catalog.value.methods[0].id;
    right.methodId.value = known(query.get('right'));
    const wished = dataOf(query.get('data'));
    dataId.value = wished && fits(left.method.value, wished.kind) ? wished.id : dataFor(left.method.value);
    if (right.method.value && !fits(right.method.value, data.value.kind)) right.methodId.value = '';
    for (const s of shown.value) {
      const settings = {};
      for (const setting of s.method.value.settings) {
        const text = query.get(s.key + setting.name);
        if (text !== null) settings[setting.name] = valueOf(setting, text);
      }
      s.settings.value = settings;
    }
    subset.value = query.get('rows') ? decodeRows(query.get('rows')) : null;
    selection.value = query.get('selected') ? decodeRows(query.get('selected')) : new Int32Array(0);
    names.value = query.getAll('named').map((text) => {
      const cut = text.lastIndexOf(':');
      return {name: text.slice(0, cut), rows: decodeRows(text.slice(cut + 1))};
    });
    groupNames.value = Object.fromEntries(
      [...query].filter(([key]) => /^group\.\d+$/.test(key)).map(([key, name]) => [key.slice(6), name]),
    );
    const view = (query.get('view') ?? '').split(',').map(Number);
    camera.value = view.length === 3 && view.every(Number.isFinite) && view[0] > 0
      ? {zoom: view[0], x: view[1], y: view[2]} : {zoom: 1, x: 0, y: 0};
    for (const s of shown.value) {
      const found = jobs.value.find((j) => j.id === query.get(`${s.key}job`)
        && j.method === s.methodId.value && j.data === dataId.value);
      if (found && s.run.value?.id === found.id) continue;
      if (found) {
        const run = new Run(found.id, found);
        const at = query.get(`${s.key}at`);
        if (at !== null) run.playing.value = false;
        s.show(run);
        if (found.kept?.length) run.show(at !== null && found.kept.includes(+at) ? +at : found.kept.at(-1));
      } else {
        s.drop();
        runs.push(s);
      }
    }
  });
  for (const s of runs) s.start();
}

export async function open() {
  try {
    const [all, found] = await Promise.all([api.get('/api/catalog'), api.get('/api/jobs')]);
    if (!all.data.some((d) => d.kind === 'none')) all.data.push(NOTHING);
    catalog.value = all;
    jobs.value = found.jobs ?? found;
  } catch (error) {
    trouble.value = error.message;
    return;
  }
  stream = new api.Stream(onState, (frame) => runOf(frame.job)?.onFrame(frame), (up) => { online.value = up; });
  read(location.hash.slice(1));
  effect(remember);
  addEventListener('hashchange', () => {
    const text = location.hash.slice(1);
    if (text !== written) { written = text; read(text); }
  });
}

export async function refreshJobs() {
  try {
    const found = await api.get('/api/jobs');
    jobs.value = found.jobs ?? found;
  } catch { /* the stream says that the lab is away */ }
}
