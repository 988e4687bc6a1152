// One run: a job of the server, its frames, and the player that goes through them at a calm pace.
import {signal} from '@preact/signals';
import * as api from './api.js';

const KEEP = 96 * 2 ** 20; // bytes of frames held by the page
const LENGTH = 5000; // a finished run is played in at most so many milliseconds

let made = 0;

export class Run {
  /** A choice of {data, method, settings, rows}; `state` is that of the server's job, where there is one already. */
  constructor({data, method, settings = {}, rows = null}, state = null) {
    Object.assign(this, {data, method, settings, rows});
    this.key = `run-${made += 1}`;
    this.job = signal(state?.id ?? '');
    this.state = signal(state);
    this.frame = signal(null);
    this.playing = signal(true);
    this.error = signal('');
    this.groupNames = signal({}); // label → name
    this.until = Infinity; // the frame at which it stops by itself
    this.pace = 160;
    this.cache = new Map();
    this.bytes = 0;
    this.first = null;
    this.wanted = null; // the frame asked for last
    this.timer = 0;
    this.closed = false;
  }

  get id() { return this.job.value; }
  get live() { return this.state.value?.live ?? !this.error.value; }
  get done() { return this.state.value?.ready ?? false; } // there is something to take away
  get answers() { return this.done && this.state.value.open; }
  get silence() { return api.replay ? 'Start `twofold lab` to ask the model.' : this.done
    ? 'Its process has ended: run it again to ask it.' : 'Ready when the run is done.'; }
  get kept() { return this.state.value?.kept ?? []; }

  valueOf(setting) { return this.settings[setting.name] ?? setting.default; }

  /** Asks the server for a job; a run that was left in the meantime leaves it again. */
  async start() {
    const settings = {};
    for (const one of this.method.settings) {
      const value = this.valueOf(one);
      if (value !== null && value !== undefined) settings[one.name] = value;
    }
    const body = {data: this.data.id, method: this.method.id, settings, shown: true};
    if (this.rows) body.rows = Array.from(this.rows);
    try {
      const {id} = await api.post('/api/jobs', body);
      this.job.value = id;
      if (this.closed) api.post(`/api/jobs/${id}/cancel`).catch(() => {});
    } catch (error) {
      this.error.value = error.message;
    }
  }

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
    if (at >= this.until) this.playing.value = false;
    if (!ahead.length || at >= this.until) return;
    const pace = Math.min(220, Math.max(40, LENGTH / kept.length));
    const stride = Math.max(1, Math.round((ahead.length * 40) / LENGTH));
    this.pace = pace;
    this.timer = setTimeout(async () => {
      const next = ahead[Math.min(stride, ahead.length) - 1];
      if (this.playing.value) await this.show(next > this.until ? ahead.find((i) => i >= this.until) : next);
      this.timer = 0;
      this.tick();
    }, pace);
  }

  async control(word) {
    if (!this.id) return; // the server has not answered yet
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
    this.until = Infinity;
    if (this.state.value?.status === 'paused') this.control('resume');
    this.tick();
  }

  async pause() {
    this.playing.value = false;
    if (this.state.value?.status === 'running') await this.control('pause');
  }

  /** One sweep on: a frame that is there, or else a new one from the paused job. */
  async step(by) {
    const at = this.frame.value?.index ?? -1;
    const next = by > 0 ? this.kept.find((i) => i > at) : this.kept.findLast((i) => i < at);
    await this.pause();
    if (next !== undefined) this.show(next);
    else if (by > 0 && this.live && this.id) {
      const before = this.state.value?.frames ?? 0;
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

  stop() { this.control('stop'); }

  /** The page shows another run. The server ends a job that no page shows. */
  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }
}
