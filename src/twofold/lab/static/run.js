// One run: a job of the server, its frames, and the player that goes through them at a calm pace.
import {signal} from '@preact/signals';
import * as api from './api.js';

const KEEP = 96 * 2 ** 20; // bytes of frames held by the page
const LENGTH = 5000; // a finished run is played in at most so many milliseconds
const LIVE = new Set(['waiting', 'running', 'paused']);

export class Run {
  constructor(id, state) {
    this.id = id;
    this.state = signal(state);
    this.frame = signal(null);
    this.playing = signal(true);
    this.error = signal('');
    this.pace = 160;
    this.cache = new Map();
    this.bytes = 0;
    this.first = null;
    this.wanted = null; // the frame asked for last
    this.timer = 0;
    this.closed = false;
  }

  get live() { return LIVE.has(this.state.value?.status ?? 'waiting'); }
  get kept() { return this.state.value?.kept ?? []; }

  onState(state) {
    this.state.value = {...this.state.value, ...state}; // later states leave out what does not change
    if (this.wanted === null && state.kept?.length) this.show(state.kept[0]);
    this.tick();
  }

  onFrame(frame) {
    this.keep(frame);
    if (this.wanted === null && this.frame.value === null && this.complete(frame)) this.frame.value = frame;
    this.tick();
  }

  keep(frame) {
    if (frame.index === 0) this.first ??= frame;
    if (this.cache.has(frame.index)) return;
    this.cache.set(frame.index, frame);
    this.bytes += frame.bytes;
    for (const [index, old] of this.cache) {
      if (this.bytes <= KEEP || index === this.frame.value?.index) break;
      this.cache.delete(index);
      this.bytes -= old.bytes;
    }
  }

  /** What the first frame says once holds for every frame: its static arrays, and its words. */
  complete(frame) {
    if (!this.first) return false;
    const {arrays, meta} = this.first;
    for (const name of meta.static ?? []) if (name in arrays) frame.arrays[name] ??= arrays[name];
    for (const name of Object.keys(meta)) frame.meta[name] ??= meta[name];
    return true;
  }

  async get(index) {
    const held = this.cache.get(index);
    if (held) return held;
    const frame = await api.frame(`/api/jobs/${this.id}/frames/${index}`);
    this.keep(frame);
    return frame;
  }

  async show(index) {
    this.wanted = index;
    try {
      if (!this.first) this.first = await this.get(0);
      const frame = await this.get(index);
      this.complete(frame);
      if (this.wanted === index && !this.closed) this.frame.value = frame;
    } catch (error) {
      if (!this.live) this.error.value = error.message; // a running job may have thinned it away
    }
  }

  /** The next frame after a breath, while playing; a long way is taken in longer strides. */
  tick() {
    if (this.timer || !this.playing.value || this.closed) return;
    const kept = this.kept;
    const at = this.frame.value?.index ?? -1;
    const ahead = kept.filter((i) => i > at);
    if (!ahead.length) return;
    const pace = Math.min(220, Math.max(40, LENGTH / kept.length));
    const stride = Math.max(1, Math.round((ahead.length * 40) / LENGTH));
    this.pace = pace;
    this.timer = setTimeout(async () => {
      if (this.playing.value) await this.show(ahead[Math.min(stride, ahead.length) - 1]);
      this.timer = 0;
      this.tick();
    }, pace);
  }

  async control(word) {
    try {
      this.error.value = '';
      await api.post(`/api/jobs/${this.id}/${word}`);
    } catch (error) {
      this.error.value = error.message;
    }
  }

  play() {
    const last = this.kept.at(-1);
    if (!this.live && this.frame.value && this.frame.value.index >= last) this.show(this.kept[0]);
    this.playing.value = true;
    if (this.state.value?.status === 'paused') this.control('resume');
    this.tick();
  }

  pause() {
    this.playing.value = false;
    if (this.state.value?.status === 'running') this.control('pause');
  }

  /** One sweep on: a frame that is there, or else a new one from the paused job. */
  step(by) {
    if (this.playing.value) this.pause();
    const at = this.frame.value?.index ?? -1;
    const next = by > 0 ? this.kept.find((i) => i > at) : this.kept.findLast((i) => i < at);
    if (next !== undefined) this.show(next);
    else if (by > 0 && this.live) {
      const before = this.state.value.frames;
      const stop = this.state.subscribe((state) => {
        if (state && state.frames > before) {
          queueMicrotask(() => stop());
          this.show(state.kept.at(-1));
        }
      });
      this.control('step');
    }
  }

  seek(index) {
    if (this.playing.value) this.pause();
    this.show(index);
  }

  cancel() { this.control('cancel'); }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    if (this.live) api.post(`/api/jobs/${this.id}/cancel`).catch(() => {});
  }
}
