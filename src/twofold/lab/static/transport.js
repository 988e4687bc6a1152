// Play, pause, step, rewind: one run as a strip of frames.
import {html} from './html.js';
import {Icon} from './icons.js';
import {shown} from './state.js';

export function Transport({run, name}) {
  const state = run.state.value;
  const frame = run.frame.value;
  const kept = state?.kept ?? [];
  const at = Math.max(0, kept.findLastIndex((i) => i <= (frame?.index ?? 0)));
  const {live} = run;
  const playing = run.playing.value && (live || at < kept.length - 1);
  const word = state?.status ?? (run.error.value ? 'failed' : 'starting');
  return html`<div class="transport" role="group" aria-label=${`Playback of ${name}`}>
    <button class="round main" onClick=${() => (playing ? run.pause() : run.play())} aria-label=${playing ? 'Pause'
      : 'Play'}
      title=${`${playing ? 'Pause' : 'Play'} (space)`}><${Icon} name=${playing ? 'pause' : 'play'} /></button>
    <button class="round" onClick=${() => run.step(-1)} disabled=${at === 0} aria-label="One frame back"
      title="One frame back (←)"><${Icon} name="back" /></button>
    <button class="round" onClick=${() => run.step(1)} disabled=${!live && at >= kept.length - 1}
      aria-label="One sweep on" title="One sweep on (→)"><${Icon} name="forward" /></button>
    <input type="range" class="scrub" min="0" max=${Math.max(kept.length - 1, 0)} step="1" value=${at}
      disabled=${kept.length < 2}
      aria-label="Frame" aria-valuetext=${frame ? `sweep ${frame.sweep}` : 'none'}
        onInput=${(e) => run.seek(kept[+e.currentTarget.value])} />
    <output class="count">${frame ? `sweep ${frame.sweep}` : ''}<span class=${`word ${word}`}>${word}</span></output>
    <button class="round" onClick=${() => run.stop()} disabled=${!live || !run.id} aria-label="Stop this run"
      title="Stop this run"><${Icon} name="stop" /></button>
  </div>`;
}

const typing = (target) => target.closest?.('input:not([type=range]), select, textarea, [contenteditable]');

/** Space pauses, arrows step, Home and End go to the ends: wherever the focus is not in a field of its own. */
export function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const button = event.target.closest?.('button, a, summary, input[type=range]');
  const runs = shown.value;
  if (!runs.length) return;
  const each = (action) => { runs.forEach(action); event.preventDefault(); };
  if (event.key === ' ' && !button) {
    const playing = runs.some((r) => r.playing.value && (r.live || (r.frame.value?.index ?? 0) < r.kept.at(-1)));
    each((r) => (playing ? r.pause() : r.play()));
  } else if (event.target.matches?.('input[type=range]')) {
    return;
  } else if (event.key === 'ArrowRight') each((r) => r.step(1));
  else if (event.key === 'ArrowLeft') each((r) => r.step(-1));
  else if (event.key === 'Home') each((r) => r.kept.length && r.seek(r.kept[0]));
  else if (event.key === 'End') each((r) => r.kept.length && r.seek(r.kept.at(-1)));
}
