// The left column: data, method, a few settings, and what to compare with.
import {signal} from '@preact/signals';
import {useEffect, useRef, useState} from 'preact/hooks';
import {html} from './html.js';
import {Icon} from './icons.js';
import {
  catalog, choose, compareWith, comparing, data, fitOn, fits, help, inHand, jobs, reasonAgainst, refreshJobs, reopen,
    run,
  runAgain, set, shown, take, trouble, useData,
} from './state.js';
import {capital, readNumber, wordsOf} from './text.js';

const query = matchMedia('(min-width: 901px)');
const wide = signal(query.matches);
query.addEventListener('change', () => { wide.value = query.matches; });

/** A control whose sentence is shown while it is in hand, and read by a screen reader. */
const told = (sentence) => ({
  onFocusIn: () => { help.value = sentence; }, onFocusOut: () => { help.value = ''; },
  onMouseEnter: () => { help.value = sentence; }, onMouseLeave: () => { help.value = ''; },
});

function Field({id, label, about, value, children}) {
  return html`<div class="field" ...${told(about)}>
    <label for=${id}><span>${capital(label)}</span>${value !== undefined && html`<output
      for=${id}>${value}</output>`}</label>
    ${children}
    <span id=${`${id}-about`} class="unseen">${about}</span>
  </div>`;
}

function NumberSetting({id, setting, value, onChange}) {
  const whole = setting.type === 'int';
  const {min, max, log} = setting;
  const [held, hold] = useState(null);
  const now = held ?? value;
  const free = min === null || max === null || min === undefined || max === undefined
    || (whole && !log && max - min > 10000);
  if (free) {
    return html`<${Field} id=${id} label=${setting.label} about=${setting.about}>
      <input id=${id} type="number" value=${value} min=${min} max=${max} step=${setting.step ?? (whole ? 1 : 'any')}
        aria-describedby=${`${id}-about`}
        onChange=${(e) => e.currentTarget.value !== '' && onChange(+e.currentTarget.value)} />
    <//>`;
  }
  const low = min > 0 ? min : max * 1e-8; // the left end of a logarithmic scale that begins at zero is zero
  const [from, to] = log ? [0, 200] : [min, max];
  const automatic = now === null || now === undefined;
  const position = automatic ? (from + to) / 2 : log ? (200 * Math.log(Math.max(now, low) / low)) / Math.log(max / low)
    : now;
  const spoken = automatic ? 'automatic' : readNumber(now);
  const read = (e) => {
    const p = +e.currentTarget.value;
    const raw = !log ? p : p === 0 ? min : low * (max / low) ** (p / 200);
    return whole ? Math.round(raw) : log ? +raw.toPrecision(2) : raw;
  };
  return html`<${Field} id=${id} label=${setting.label} about=${setting.about} value=${spoken}>
    <input id=${id} type="range" min=${from} max=${to}
      step=${log ? 1 : setting.step ?? (whole ? 1 : (max - min) / 100)} value=${position}
      aria-valuetext=${spoken} aria-describedby=${`${id}-about`}
      onInput=${(e) => hold(read(e))}
        onChange=${(e) => { const v = read(e); hold(null); if (v !== value) onChange(v); }} />
    ${setting.default === null && !automatic && html`<button class="link"
      onClick=${() => onChange(null)}>automatic</button>`}
  <//>`;
}

const words = (choice) => (choice === null ? 'none' : String(choice).replaceAll('_', ' '));

function ChoiceSetting({id, setting, value, onChange}) {
  const {choices} = setting;
  return html`<${Field} id=${id} label=${setting.label} about=${setting.about}>
    <select id=${id} value=${String(value)} aria-describedby=${`${id}-about`}
      onChange=${(e) => onChange(choices.find((c) => String(c) === e.currentTarget.value))}>
      ${choices.map((c) => html`<option key=${String(c)} value=${String(c)}>${words(c)}</option>`)}
    </select>
  <//>`;
}

function BoolSetting({id, setting, value, onChange}) {
  return html`<div class="field check" ...${told(setting.about)}>
    <input id=${id} type="checkbox" checked=${value} aria-describedby=${`${id}-about`}
      onChange=${(e) => onChange(e.currentTarget.checked)} />
    <label for=${id}>${capital(setting.label)}</label><span id=${`${id}-about`} class="unseen">${setting.about}</span>
  </div>`;
}

function Setting({owner, setting}) {
  const id = `${shown.value.indexOf(owner) ? 'right' : 'left'}-${setting.name}`;
  const props = {id, setting, value: owner.valueOf(setting), onChange: (v) => set(owner, setting.name, v)};
  if (setting.type === 'int' || setting.type === 'float') return html`<${NumberSetting} ...${props} />`;
  if (setting.type === 'choice') return html`<${ChoiceSetting} ...${props} />`;
  if (setting.type === 'bool') return html`<${BoolSetting} ...${props} />`;
  if (setting.type === 'mask') return html`<p class="note">${setting.about}</p>`;
  return null;
}

function Settings({owner}) {
  const plain = owner.method.settings.filter((s) => !s.advanced);
  const more = owner.method.settings.filter((s) => s.advanced);
  return html`<div class="settings" key=${`${inHand.value}${owner.method.id}`}>
    ${plain.map((s) => html`<${Setting} key=${s.name} owner=${owner} setting=${s} />`)}
    ${more.length > 0 && html`<details class="more"><summary>More settings</summary>
      ${more.map((s) => html`<${Setting} key=${s.name} owner=${owner} setting=${s} />`)}</details>`}
  </div>`;
}

const KINDS = {
  table: 'Tables', ratings: 'Ratings', text: 'Text', picture: 'Pictures', pictures: 'Sets of pictures',
    none: 'Made by the method',
};

/** Groups of choices in the order of their first; `word` writes one. */
const options = (groups, word) => Object.entries(groups).map(([label, all]) => html`<optgroup key=${label}
  label=${label}>
  ${all.map((x) => html`<option key=${x.id} value=${x.id}>${word(x)}</option>`)}</optgroup>`);

function DataChoice() {
  const input = useRef(null);
  const d = data.value;
  const able = catalog.value.data.filter((x) => x.start);
  const [rows] = shown.value.map((r) => r.rows);
  return html`<section class="block" aria-labelledby="data-title">
    <h2 id="data-title">Data</h2>
    <div class="row">
      <select aria-labelledby="data-title" aria-describedby="data-about" value=${d?.id ?? ''}
        onChange=${(e) => useData(e.currentTarget.value)}>
        ${!d && html`<option value="" disabled>choose data</option>`}
        ${options(Object.groupBy(able, (x) => KINDS[x.kind] ?? x.kind), (x) => x.name)}
      </select>
      <button class="square" onClick=${() => input.current.click()} aria-label="Open a file of your own"
        title="Open a file of your own"><${Icon} name="file" /></button>
      <input ref=${input} type="file" class="unseen" tabindex="-1" aria-label="A file of your own"
        onChange=${(e) => { const [file] = e.currentTarget.files; e.currentTarget.value = '';
          if (file) take(file); }} />
    </div>
    <p class="about" id="data-about">${d?.own ? '' : d?.about}</p>
    ${trouble.value && html`<p class="error" role="alert">${trouble.value}</p>`}
    ${rows && html`<p class="chip">On ${wordsOf(rows.length, 'selected row')}
      <button onClick=${() => fitOn(null)} aria-label="Use all rows again"><${Icon} name="cross" /></button></p>`}
  </section>`;
}

function MethodChoice({owner}) {
  const d = owner.data;
  const able = catalog.value.methods.filter((m) => fits(m, d));
  const unable = catalog.value.methods.filter((m) => !fits(m, d));
  return html`<section class="block" aria-labelledby="method-title">
    <h2 id="method-title">Method</h2>
    ${comparing.value && html`<div class="tabs" role="group" aria-label="Run in hand">
      ${['Left', 'Right'].map((word, i) => html`<button key=${i} aria-pressed=${inHand.value === i}
        onClick=${() => { inHand.value = i; }}>${word}</button>`)}
    </div>`}
    <select aria-labelledby="method-title" aria-describedby="method-about" value=${owner.method.id}
      onChange=${(e) => choose(e.currentTarget.value)}>
      ${options(Object.groupBy(able, (m) => capital(m.family)), (m) => m.title)}
      <optgroup label="Not for this data">${unable.map((m) => html`<option key=${m.id} value=${m.id}
        disabled>${m.title}: ${d.name} ${reasonAgainst(m, d)}</option>`)}</optgroup>
    </select>
    <p class="about" id="method-about">${owner.method.about}</p>
  </section>`;
}

function Compare() {
  const [{method, data: d}, beside] = shown.value;
  const able = catalog.value.methods.filter((m) => fits(m, d) && m.id !== method.id);
  const place = (m) => (method.compare?.includes(m.id) ? 'Worth comparing' : m.view === method.view
    ? 'The same picture' : 'Others');
  const groups = Object.groupBy([...able].sort((a, b) => (place(b) > place(a) ? 1 : -1)), place);
  return html`<section class="block" aria-labelledby="compare-title">
    <h2 id="compare-title">Beside it</h2>
    <select aria-labelledby="compare-title" value=${beside?.method.id ?? ''}
      onChange=${(e) => compareWith(e.currentTarget.value)}
      ...${told('A second run on the same data: axes and selection are linked.')}>
      <option value="">nothing</option>
      <option value=${method.id}>${method.title}, other settings</option>
      ${options(groups, (m) => m.title)}
    </select>
  </section>`;
}

function Jobs() {
  const known = (list, id) => list.find((one) => one.id === id);
  const list = jobs.value.filter((j) => known(catalog.value.methods, j.method)
    && known(catalog.value.data, j.data)).slice(-12).reverse();
  return html`<details class="more jobs" onToggle=${(e) => e.currentTarget.open && refreshJobs()}>
    <summary>Earlier runs</summary>
    ${list.length === 0 && html`<p class="note">None yet.</p>`}
    <ul>${list.map((j) => html`<li key=${j.id}><button class="link"
      aria-current=${shown.value.some((r) => r.id === j.id)} onClick=${() => reopen(j)}>
      ${known(catalog.value.methods, j.method).title}</button>
      <span class="soft">${known(catalog.value.data, j.data).name} · ${j.status}</span></li>`)}</ul>
  </details>`;
}

export function Panel() {
  useEffect(() => { refreshJobs(); }, []);
  const owner = run.value;
  return html`<div class="panel">
    <div class="scroll">
      <${DataChoice} />
      ${owner && html`<${MethodChoice} owner=${owner} />
      <details class="fold" open=${wide.value}><summary>Settings</summary>
        <section class="block" aria-label="Settings">
          <${Settings} owner=${owner} />
          <button class="primary" onClick=${() => runAgain(owner)}>Run again</button>
        </section>
        <${Compare} />
      </details>`}
      <${Jobs} />
    </div>
    <p class="help" aria-hidden="true">${help.value
      || 'Every control explains itself here. Space pauses, arrows step.'}</p>
  </div>`;
}
