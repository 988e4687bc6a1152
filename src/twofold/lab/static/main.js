// One screen: controls, the picture with its curve, and what lies behind it.
import {render} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {replay} from './api.js';
import {Curve} from './curve.js';
import {Details} from './details.js';
import {html} from './html.js';
import {Icon} from './icons.js';
import {choice, ink, theme} from './palette.js';
import {Panel} from './panel.js';
import {camera, catalog, comparing, data, inHand, online, open, shown, status, story, take, tool,
  trouble} from './state.js';
import {Start} from './start.js';
import {onKey, Transport} from './transport.js';
import {views} from './views/index.js';

function Header() {
  const next = {auto: 'light', light: 'dark', dark: 'auto'}[choice.value];
  const icon = {auto: 'half', light: 'sun', dark: 'moon'}[choice.value];
  const spoken = {auto: 'as the system', light: 'light', dark: 'dark'};
  return html`<header class="head">
    <h1><span>twofold</span> lab</h1>
    <p class="now">${data.value && html`${shown.value.map((one, i) => html`${i > 0 && html` <span
      class="soft">beside</span> `}${one.method.title}`)}
      <span class="soft"> on </span>${data.value.name}`}</p>
    ${!online.value && html`<p class="error slim" role="alert">The lab does not answer; trying again.</p>`}
    <button class="round" onClick=${() => { choice.value = next; }}
      aria-label=${`Colors: ${spoken[choice.value]}; change to ${spoken[next]}`}
      title=${`Colors: ${spoken[choice.value]}`}><${Icon} name=${icon} /></button>
  </header>`;
}

function Tools({view}) {
  if (!view.plane) return null;
  const moved = camera.value.zoom !== 1 || camera.value.x || camera.value.y;
  const pick = (name, words, icon) => html`<button class="round" aria-pressed=${tool.value === name}
    onClick=${() => { tool.value = tool.value === name ? 'look' : name; }}
    aria-label=${words} title=${words}><${Icon} name=${icon} /></button>`;
  return html`<div class="tools" role="group" aria-label="Tools of the picture">
    ${view.selectable && pick('lasso', 'Draw around points to select them', 'lasso')}
    ${pick('move', 'Drag to move the picture', 'move')}
    <button class="round" disabled=${!moved} onClick=${() => { camera.value = {zoom: 1, x: 0, y: 0}; }}
      aria-label="Show everything again" title="Show everything again"><${Icon} name="home" /></button>
  </div>`;
}

function Stage({run, index}) {
  const {title} = run.method;
  const view = views[run.method.view];
  const frame = run.frame.value;
  const state = run.state.value;
  const failed = (state?.status === 'failed' && state.message) || run.error.value;
  return html`<section class=${`stage ${comparing.value && inHand.value === index ? 'held' : ''}`} aria-label=${title}
    data-job=${run.id}
      onPointerDown=${() => { if (comparing.value) inHand.value = index; }}>
    <div class="stage-head">${comparing.value ? html`<h2>${title}</h2>` : html`<h2 class="unseen">${title}</h2>`}
      <p class="caption">${frame ? view.caption?.(frame) : ''}</p><${Tools} view=${view} /></div>
    <div class="picture" data-job=${frame?.job}>
      ${(frame || view.early) && html`<${view.Picture} key=${run.key} run=${run} frame=${frame} />`}
      ${!frame && !failed && !view.early && html`<p class="waiting">${state?.status === 'waiting'
        ? 'Waiting for a free process.' : 'Starting.'}</p>`}
      ${failed && html`<p class="error over" role="alert">${failed}</p>`}
    </div>
    ${index === 0 && story.value && html`<p class="told">${story.value.sentence}</p>`}
    <${Transport} run=${run} name=${title} /><${Curve} run=${run} name=${title} color=${index} />
  </section>`;
}

function App() {
  const [dropping, drop] = useState(false);
  useEffect(() => {
    const over = (e) => { if (e.dataTransfer?.types.includes('Files')) { e.preventDefault(); drop(true); } };
    const leave = (e) => { if (!e.relatedTarget) drop(false); };
    const dropped = (e) => {
      e.preventDefault();
      drop(false);
      const file = e.dataTransfer?.files[0];
      if (file) take(file);
    };
    addEventListener('keydown', onKey);
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', dropped);
    open();
  }, []);
  ink.value;
  theme.value;
  if (!catalog.value) return html`<main class="opening"><p role="status">${trouble.value
    || 'The lab is opening.'}</p></main>`;
  return html`<div class=${`lab ${comparing.value ? 'two' : shown.value.length ? '' : 'none'} ${replay ? 'replay'
    : ''}`}>
    <${Header} />
    ${!replay && html`<aside class="side" aria-label="Controls"><${Panel} /></aside>`}
    <main class="stages">${shown.value.length ? shown.value.map((run, i) => html`<${Stage} key=${run.key} run=${run}
      index=${i} />`) : html`<${Start} />`}</main>
    <aside class="side details" aria-label="Details"><${Details} /></aside>
    <p class="unseen" role="status" aria-live="polite">${status.value}</p>
    ${dropping && html`<div class="drop" aria-hidden="true">Drop a table, ratings, text or a picture</div>`}
  </div>`;
}

const root = document.getElementById('lab');
root.replaceChildren();
render(html`<${App} />`, root);
