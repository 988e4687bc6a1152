// The left column: data, method, a few settings, and what to compare with.
import {signal} from '@preact/signals';
import {useEffect, useRef, useState} from 'preact/hooks';
import {html} from './html.js';
import {Icon} from './icons.js';
import {
  catalog, choose, compareWith, comparing, data, dataId, fits, help, inHand, jobs, left, refreshJobs, reopen, right,
  side, sides, subset, take, trouble, useData,
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
    <label for=${id}><span>${capital(label)}</span>${value !== undefined && html`<output for=${id}>${value}</output>`}</label>
    ${children}
    <span id=${`${id}-about`} class="unseen">${about}</span>
  </div>`;
}

function NumberSetting({id, setting, value, onChange}) {
  const whole = setting.type === 'int';
  const {min, max, log} = setting;
  const [held, hold] = useState(null);
  const now = held ?? value;
  const free = min === null || max === null || min === undefined || max === undefined || (whole && !log && max - min > 10000);
  if (free) {
    return html`<${Field} id=${id} label=${setting.label} about=${setting.about}>
      <input id=${id} type="number" value=${value} min=${min} max=${max} step=${setting.step ?? (whole ? 1 : 'any')} aria-describedby=${`${id}-about`}
        onChange=${(e) => e.currentTarget.value !== '' && onChange(+e.currentTarget.value)} />
    <//>`;
  }
  const low = min > 0 ? min : max * 1e-8; // the left end of a logarithmic scale that begins at zero is zero
  const [from, to] = log ? [0, 200] : [min, max];
  const automatic = now === null || now === undefined;
  const position = automatic ? (from + to) / 2 : log ? (200 * Math.log(Math.max(now, low) / low)) / Math.log(max / low) : now;
  const spoken = automatic ? 'automatic' : readNumber(now);
  const read = (e) => {
    const p = +e.currentTarget.value;
    const raw = !log ? p : p === 0 ? min : low * (max / low) ** (p / 200);
    return whole ? Math.round(raw) : log ? +raw.toPrecision(2) : raw;
  };
  return html`<${Field} id=${id} label=${setting.label} about=${setting.about} value=${spoken}>
    <input id=${id} type="range" min=${from} max=${to} step=${log ? 1 : setting.step ?? (whole ? 1 : (max - min) / 100)} value=${position}
      aria-valuetext=${spoken} aria-describedby=${`${id}-about`}
      onInput=${(e) => hold(read(e))} onChange=${(e) => { const v = read(e); hold(null); if (v !== value) onChange(v); }} />
    ${setting.default === null && !automatic && html`<button class="link" onClick=${() => onChange(null)}>automatic</button>`}
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
    <input id=${id} type="checkbox" checked=${value} aria-describedby=${`${id}-about`} onChange=${(e) => onChange(e.currentTarget.checked)} />
    <label for=${id}>${capital(setting.label)}</label><span id=${`${id}-about`} class="unseen">${setting.about}</span>
  </div>`;
}

function Setting({owner, setting}) {
  const value = owner.settings.value[setting.name] ?? setting.default;
  const id = `${owner === right ? 'right' : 'left'}-${setting.name}`;
  const props = {id, setting, value, onChange: (v) => owner.set(setting.name, v)};
  if (setting.type === 'int' || setting.type === 'float') return html`<${NumberSetting} ...${props} />`;
  if (setting.type === 'choice') return html`<${ChoiceSetting} ...${props} />`;
  if (setting.type === 'bool') return html`<${BoolSetting} ...${props} />`;
  if (setting.type === 'mask') return html`<p class="note">${setting.about}</p>`;
  return null;
}

function Settings() {
  const owner = side.value;
  const method = owner.method.value;
  if (!method) return null;
  const plain = method.settings.filter((s) => !s.advanced);
  const more = method.settings.filter((s) => s.advanced);
  return html`<div class="settings" key=${`${owner.key}${method.id}`}>
    ${plain.map((s) => html`<${Setting} key=${s.name} owner=${owner} setting=${s} />`)}
    ${more.length > 0 && html`<details class="more"><summary>More settings</summary>
      ${more.map((s) => html`<${Setting} key=${s.name} owner=${owner} setting=${s} />`)}</details>`}
  </div>`;
}

function DataChoice() {
  const input = useRef(null);
  const d = data.value;
  const groups = Object.entries(Object.groupBy(catalog.value.data.filter((x) => x.kind !== 'none' || x.id === dataId.value), (x) => x.kind));
  const titles = {table: 'Tables', ratings: 'Ratings', text: 'Text', picture: 'Pictures', pictures: 'Sets of pictures', signal: 'Signals', none: 'Made by the method'};
  return html`<section class="block" aria-labelledby="data-title">
    <h2 id="data-title">Data</h2>
    <div class="row">
      <select aria-labelledby="data-title" aria-describedby="data-about" value=${dataId.value} onChange=${(e) => useData(e.currentTarget.value)}>
        ${groups.map(([kind, all]) => html`<optgroup key=${kind} label=${titles[kind] ?? kind}>
          ${all.map((x) => html`<option key=${x.id} value=${x.id}>${x.name}</option>`)}</optgroup>`)}
      </select>
      <button class="square" onClick=${() => input.current.click()} aria-label="Open a file of your own" title="Open a file of your own"><${Icon} name="file" /></button>
      <input ref=${input} type="file" class="unseen" tabindex="-1" aria-label="A file of your own"
        onChange=${(e) => { const [file] = e.currentTarget.files; e.currentTarget.value = ''; if (file) take(file); }} />
    </div>
    <p class="about" id="data-about">${d?.about}</p>
    ${trouble.value && html`<p class="error" role="alert">${trouble.value}</p>`}
    ${subset.value && html`<p class="chip">On ${wordsOf(subset.value.length, 'selected row')}
      <button onClick=${() => { subset.value = null; for (const s of sides) if (s.method.value) s.start(); }} aria-label="Use all rows again"><${Icon} name="cross" /></button></p>`}
  </section>`;
}

function MethodChoice() {
  const owner = side.value;
  const groups = Object.entries(Object.groupBy(catalog.value.methods, (m) => m.family));
  return html`<section class="block" aria-labelledby="method-title">
    <h2 id="method-title">Method</h2>
    ${comparing.value && html`<div class="tabs" role="group" aria-label="Run in hand">
      ${sides.map((s, i) => html`<button key=${i} aria-pressed=${inHand.value === i} onClick=${() => { inHand.value = i; }}>${i ? 'Right' : 'Left'}</button>`)}
    </div>`}
    <select aria-labelledby="method-title" aria-describedby="method-about" value=${owner.methodId.value} onChange=${(e) => choose(e.currentTarget.value)}>
      ${groups.map(([family, all]) => html`<optgroup key=${family} label=${capital(family)}>
        ${all.filter((m) => owner === left || fits(m, data.value.kind)).map((m) => html`<option key=${m.id} value=${m.id}>${m.title}</option>`)}</optgroup>`)}
    </select>
    <p class="about" id="method-about">${owner.method.value?.about}</p>
  </section>`;
}

function Compare() {
  const method = left.method.value;
  const kind = data.value?.kind;
  if (!method || !kind) return null;
  const able = catalog.value.methods.filter((m) => fits(m, kind));
  const first = able.filter((m) => method.compare?.includes(m.id) && m.id !== method.id);
  const alike = able.filter((m) => !first.includes(m) && m.id !== method.id && m.view === method.view);
  const rest = able.filter((m) => !first.includes(m) && !alike.includes(m) && m.id !== method.id);
  const group = (label, list) => list.length > 0 && html`<optgroup label=${label}>
    ${list.map((m) => html`<option key=${m.id} value=${m.id}>${m.title}</option>`)}</optgroup>`;
  return html`<section class="block" aria-labelledby="compare-title">
    <h2 id="compare-title">Beside it</h2>
    <select aria-labelledby="compare-title" value=${right.methodId.value} onChange=${(e) => compareWith(e.currentTarget.value)}
      ...${told('A second run on the same data: axes and selection are linked.')}>
      <option value="">nothing</option>
      ${group('Worth comparing', first)}
      ${group('The same picture', alike)}
      <option value=${method.id}>${method.title}, other settings</option>
      ${group('Others', rest)}
    </select>
  </section>`;
}

function Jobs() {
  const list = jobs.value.filter((j) => catalog.value.methods.some((m) => m.id === j.method)).slice(-8).reverse();
  return html`<details class="more jobs" onToggle=${(e) => e.currentTarget.open && refreshJobs()}>
    <summary>Earlier runs</summary>
    ${list.length === 0 && html`<p class="note">None yet.</p>`}
    <ul>${list.map((j) => html`<li key=${j.id}><button class="link" onClick=${() => reopen(j)}>
      ${catalog.value.methods.find((m) => m.id === j.method).title}</button>
      <span class="soft">${catalog.value.data.find((d) => d.id === j.data)?.name ?? j.data} · ${j.status}</span></li>`)}</ul>
  </details>`;
}

export function Panel() {
  useEffect(() => { refreshJobs(); }, []);
  const owner = side.value;
  return html`<div class="panel">
    <div class="scroll">
      <${DataChoice} />
      <${MethodChoice} />
      <details class="fold" open=${wide.value}><summary>Settings</summary>
        <section class="block" aria-label="Settings">
          <${Settings} />
          <button class="primary" onClick=${() => owner.start()} disabled=${owner.starting.value}>Run again</button>
        </section>
        <${Compare} />
        <${Jobs} />
      </details>
    </div>
    <p class="help" aria-hidden="true">${help.value || 'Every control explains itself here. Space pauses, arrows step.'}</p>
  </div>`;
}
