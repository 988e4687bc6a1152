// The right column: what lies behind the picture, the rows of a selection, and what can be taken away.
import {useEffect, useState} from 'preact/hooks';
import * as api from './api.js';
import {html} from './html.js';
import {Icon} from './icons.js';
import {rowsOf, Thumb} from './parts.js';
import {catalog, data, fitOn, names, run as inHandRun, selection, status} from './state.js';
import {brief, capital, clip, wordsOf} from './text.js';
import {views} from './views/index.js';

const SHOWN = 40;

function Rows({rows}) {
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState('');
  const at = Array.from(rows.subarray(0, SHOWN));
  useEffect(() => {
    let current = true;
    setError('');
    rowsOf(data.value.id, at).then((a) => current && setAnswer(a), (e) => current && setError(e.message));
    return () => { current = false; };
  }, [rows, data.value.id]);
  if (error) return html`<p class="error" role="alert">${error}</p>`;
  if (!answer) return null;
  const {pictures} = answer;
  if (pictures) {
    return html`<div class="thumbs">${at.slice(0, answer.rows.length).map((row, i) => html`<${Thumb} key=${row}
      bytes=${pictures.bytes} shape=${pictures.shape} at=${i}
      label=${`row ${row}`} />`)}</div>`;
  }
  return html`<div class="table" tabindex="0" role="region" aria-label="Rows of the selection"><table>
    <thead><tr><th scope="col">row</th>${answer.columns.map((c) => html`<th scope="col"
      key=${c}>${clip(c, 24)}</th>`)}</tr></thead>
    <tbody>${answer.rows.map((row, i) => html`<tr key=${at[i]}><th
      scope="row">${at[i]}</th>${row.map((cell, j) => html`<td
        key=${j}>${brief(String(cell ?? ''))}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Rows by name: the groups of the run, and over them the names given by hand. */
function labeled(run) {
  const frame = run.frame.value;
  const groupNames = run.groupNames.value;
  const rows = {};
  const own = new Set(names.value.flatMap((n) => Array.from(n.rows)));
  const {labels} = frame?.arrays ?? {};
  labels?.data.forEach((label, i) => {
    const row = frame.arrays.rows ? frame.arrays.rows.data[i] : i;
    if (label !== 255 && !own.has(row)) (rows[groupNames[label] || `group ${label + 1}`] ??= []).push(row);
  });
  for (const n of names.value) rows[n.name] = [...(rows[n.name] ?? []), ...n.rows];
  return rows;
}

function Selection({run}) {
  const [name, setName] = useState('');
  const [error, setError] = useState('');
  const rows = selection.value;
  const add = (event) => {
    event.preventDefault();
    if (!name.trim()) return;
    const taken = new Set(rows);
    const others = names.value
      .map((n) => ({name: n.name, rows: n.rows.filter((r) => !taken.has(r))}))
      .filter((n) => n.name !== name.trim() && n.rows.length);
    names.value = [...others, {name: name.trim(), rows: Int32Array.from(rows)}];
    status.value = `${wordsOf(rows.length, 'row')} named ${name.trim()}.`;
    setName('');
  };
  const take = async (format) => {
    setError('');
    try {
      save(...await api.download(`/api/jobs/${run.id}/labels`, {rows: labeled(run), names: {}, format}));
    } catch (e) {
      setError(e.message);
    }
  };
  const total = data.value?.shape?.[0];
  return html`<section class="block" aria-labelledby="selection-title">
    <h2 id="selection-title">Selection</h2>
    ${rows.length === 0
      ? html`<p class="note">Draw around points to see their rows, or choose a whole group above.</p>`
      : html`<p class="tally"><b>${wordsOf(rows.length, 'row')}</b>${total ? ` of ${total.toLocaleString('en-US')}`
        : ''}
          <button class="link" onClick=${() => { selection.value = new Int32Array(0); }}>clear</button></p>
        <${Rows} rows=${rows} />
        ${rows.length > SHOWN && html`<p class="note">The first ${SHOWN} are shown.</p>`}
        <form class="row" onSubmit=${add}>
          <input type="text" value=${name} onInput=${(e) => setName(e.currentTarget.value)}
            placeholder="Name for these rows" aria-label="Name for these rows" maxlength="80" />
          <button type="submit" disabled=${!name.trim()}>Name</button>
        </form>
        <button onClick=${() => fitOn(rows)} disabled=${rows.length < 4}>Fit again on these rows</button>`}
    ${names.value.length > 0 && html`<ul class="names">${names.value.map((n) => html`<li key=${n.name}>
      <button class="link" onClick=${() => { selection.value = n.rows; }}>${n.name}</button> <span
        class="soft">${wordsOf(n.rows.length, 'row')}</span>
      <button class="bare" aria-label=${`Forget the name ${n.name}`}
        onClick=${() => { names.value = names.value.filter((m) => m !== n); }}><${Icon}
          name="cross" /></button></li>`)}</ul>`}
    <div class="buttons"><span>Labels as</span>
      <button onClick=${() => take('csv')}>CSV</button><button onClick=${() => take('parquet')}>Parquet</button></div>
    ${error && html`<p class="error" role="alert">${error}</p>`}
  </section>`;
}

function TakeAway({run}) {
  const {method} = run;
  const [code, setCode] = useState('');
  const [error, setError] = useState('');
  const [copied, setCopied] = useState(false);
  const {done} = run;
  useEffect(() => {
    setCode('');
    setError('');
    if (!done || !method.takes.includes('python')) return undefined;
    let current = true;
    api.text(`/api/jobs/${run.id}/take/python`).then((t) => current && setCode(t), (e) => current
      && setError(e.message));
    return () => { current = false; };
  }, [run, done]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      setCopied(true);
      status.value = 'The Python is copied.';
      setTimeout(() => setCopied(false), 1600);
    } catch {
      setError('The browser does not let the page copy: mark the text and copy it.');
    }
  };
  const files = catalog.value.downloads.filter((d) => method.takes.includes(d.id) && d.files.length);
  return html`<section class="block" aria-labelledby="take-title">
    <h2 id="take-title">Take away</h2>
    ${!done && html`<p class="note">${run.live ? run.silence : 'This run has no result to take away.'}</p>`}
    ${done && !api.replay && html`<dl class="take">${files.map(({title, files: list}) => html`<div
      key=${title}><dt>${title}</dt><dd class="buttons">${list.map(([file, kind]) => html`<a key=${file}
      class="button" href=${`/api/jobs/${run.id}/take/${file}`} download=""
        aria-label=${`${title}, ${kind}`}>${kind}</a>`)}</dd></div>`)}
      <div><dt>Replay</dt><dd class="buttons"><a class="button" href=${`/api/jobs/${run.id}/page`} download=""
        aria-label="HTML: the run as one page that plays without a server">HTML</a></dd></div></dl>`}
    ${done && code && html`<div class="code" data-job=${run.id}><div class="code-head"><span>Python</span>
      <button class="link" onClick=${copy}><${Icon} name="copy" />${copied ? 'copied' : 'copy'}</button></div>
      <pre tabindex="0" aria-label="The Python that gives this run again">${code}</pre></div>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
  </section>`;
}

/** What is known of the data before any method: its size, its columns, what was noticed, its first rows. */
function Sight({data: d, open}) {
  const [found, setFound] = useState(null);
  const [opened, setOpened] = useState(open);
  useEffect(() => {
    if (!opened) return undefined;
    let current = true;
    api.get(`/api/data/${encodeURIComponent(d.id)}`).then((a) => current && setFound(a), () => {});
    return () => { current = false; };
  }, [d.id, opened]);
  const units = {table: ['rows', 'columns'], ratings: ['people', 'items'], text: ['texts'],
    pictures: ['pictures', 'pixels down', 'across'], picture: ['pixels down', 'across', 'colors']}[d.kind];
  const size = (d.shape ?? []).map((n, i) => `${n.toLocaleString('en-US')} ${units?.[i] ?? ''}`.trim()).join(units
    ? ', ' : ' × ');
  const first = found?.rows?.slice(0, 5) ?? [];
  return html`<details class="more sight" open=${open}
    onToggle=${(e) => setOpened(e.currentTarget.open)}><summary>The data: ${size || 'none'}</summary>
    ${d.notes.map((n) => html`<p class="note" key=${n}>${capital(n)}.</p>`)}
    ${first.length > 0 && !found.pictures && html`<div class="table" tabindex="0" role="region"
      aria-label="First rows"><table>
      <thead><tr>${found.columns.map((c) => html`<th scope="col" key=${c}>${clip(c, 24)}</th>`)}</tr></thead>
      <tbody>${first.map((row, i) => html`<tr key=${i}>${row.map((cell, j) => html`<td
        key=${j}>${brief(String(cell ?? ''))}</td>`)}</tr>`)}</tbody></table></div>`}
  </details>`;
}

export function Details() {
  const run = inHandRun.value;
  const view = views[run?.method.view];
  if (!view) return null;
  const frame = run.frame.value;
  const notes = (frame?.meta.notes ?? []).filter((n) => !run.data.notes.includes(n));
  return html`<div class="scroll">
    ${run.data.kind !== 'none' && html`<${Sight} key=${run.data.id} data=${run.data} open=${run.data.own} />`}
    ${frame && view.Details && html`<section class="block"><${view.Details} key=${run.key} run=${run}
      frame=${frame} /></section>`}
    ${view.selectable && !api.replay && html`<${Selection} key=${run.data.id} run=${run} />`}
    ${notes.length > 0 && html`<section class="block"><h2>Notes</h2>${notes.map((n) => html`<p class="note"
      key=${n}>${capital(n)}</p>`)}</section>`}
    <${TakeAway} key=${run.key} run=${run} />
  </div>`;
}
