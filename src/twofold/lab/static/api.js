// What the page asks of the server: JSON, binary frames, one stream. An error is one sentence, as the server says it.

const TYPES = {f4: Float32Array, i4: Int32Array, u1: Uint8Array};

async function refuse(answer) {
  let sentence = `The lab answered ${answer.status}.`;
  try {
    const body = await answer.json();
    if (typeof body.error === 'string') sentence = body.error;
  } catch { /* no JSON: the status says it */ }
  throw new Error(sentence);
}

/** A run that was written into this file plays without a server: here is what one would answer. */
export const replay = JSON.parse(document.getElementById('replay')?.textContent ?? 'null');

function recall(path) {
  if (path in replay.frames) return new Response(bytesOf(replay.frames[path]));
  const found = replay.answers[path];
  if (found === undefined) throw new Error('This file holds one run. Start `twofold lab` for more.');
  return new Response(typeof found === 'string' ? found : JSON.stringify(found));
}

async function call(path, options) {
  if (replay) return recall(path);
  let answer;
  try {
    answer = await fetch(path, {credentials: 'same-origin', ...options});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error('The lab does not answer: is `twofold lab` still running?');
  }
  return answer.ok ? answer : refuse(answer);
}

const asJson = (body) => ({
  method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body ?? {}),
});

export const get = async (path, options) => (await call(path, options)).json();
export const text = async (path) => (await call(path)).text();
export const post = async (path, body) => (await call(path, asJson(body))).json();
export const remove = (path) => call(path, {method: 'DELETE'});
export const frame = async (path) => parseFrame(await (await call(path)).arrayBuffer());

/** A file made by the server from what the page sends, as [blob, file name]. */
export async function download(path, body) {
  const answer = await call(path, asJson(body));
  const name = /filename="?([^";]+)/.exec(answer.headers.get('Content-Disposition') ?? '')?.[1];
  return [await answer.blob(), name ?? 'twofold'];
}

export async function upload(file) {
  const answer = await call(`/api/data?name=${encodeURIComponent(file.name)}`, {
    method: 'POST', headers: {'Content-Type': 'application/octet-stream'}, body: file,
  });
  return answer.json();
}

/** A question to the process of a job; the answer is JSON, or a frame where it is a picture. */
export async function ask(job, question) {
  const options = asJson(question);
  options.headers.Accept = 'application/json, application/octet-stream';
  const answer = await call(`/api/jobs/${job}/ask`, options);
  const binary = (answer.headers.get('Content-Type') ?? '').startsWith('application/octet-stream');
  return binary ? parseFrame(await answer.arrayBuffer()) : answer.json();
}

/** Header and arrays of one binary frame; the arrays are views of the buffer, nothing is copied. */
export function parseFrame(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  let at = 4 + length;
  for (const {name, dtype, shape} of header.arrays) {
    const size = shape.reduce((a, b) => a * b, 1);
    const data = new TYPES[dtype](buffer, at, size);
    arrays[name] = {data, shape};
    at += Math.ceil(data.byteLength / 4) * 4;
  }
  return {...header, meta: header.meta ?? {}, arrays, bytes: buffer.byteLength};
}

export const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** One socket for the page. It opens again by itself, and watches again what was watched. */
export class Stream {
  constructor(onState, onFrame, onLine) {
    this.watched = [];
    this.wait = 500;
    Object.assign(this, {onState, onFrame, onLine});
    this.open();
  }

  open() {
    const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/stream`);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => { this.wait = 500; this.onLine(true); this.say(); };
    socket.onmessage = ({data}) => {
      if (typeof data !== 'string') this.onFrame(parseFrame(data));
      else {
        const {state} = JSON.parse(data);
        if (state) this.onState(state);
      }
    };
    socket.onclose = () => {
      this.onLine(false);
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(2 * this.wait, 8000);
    };
    this.socket = socket;
  }

  watch(jobs) { this.watched = jobs; this.say(); }

  say() {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({watch: this.watched}));
  }
}
