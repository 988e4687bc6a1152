// Colors of groups, in the order of twofold.plots, for a light and a dark page; and the maps from numbers to colors.
import {computed, signal} from '@preact/signals';

const DARK = ['#6fa8dc', '#f0985c', '#5fc2a2', '#e27d8d', '#ab8bd6', '#e2c15a', '#83cdec', '#c0a28e'];
const NONE = {light: '#7b8794', dark: '#8794a1'};
const RAMPS = {
  light: {}, // told by the server, as twofold.plots has them
  dark: {
    diverging: ['#e27d8d', '#7a3b48', '#20262d', '#2f567c', '#6fa8dc'],
    sequential: ['#1c242c', '#2b5178', '#6fa8dc', '#e3f0fb'],
  },
};

const query = matchMedia('(prefers-color-scheme: dark)');
const system = signal(query.matches ? 'dark' : 'light');
query.addEventListener('change', () => { system.value = query.matches ? 'dark' : 'light'; });

export const choice = signal('auto');
export const theme = computed(() => (choice.value === 'auto' ? system.value : choice.value));

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const hex = (c) => `#${c.map((x) => Math.round(x).toString(16).padStart(2, '0')).join('')}`;
const blend = (a, b, t) => a.map((x, i) => x + (b[i] - x) * t);

/** Twenty-four colors: the eight of the library, then the same paler, then deeper. */
function build(name, colors) {
  const base = colors.map(rgb);
  const [paler, deeper] = name === 'dark' ? [[255, 255, 255], [40, 48, 56]] : [[255, 255, 255], [20, 28, 36]];
  const all = [...base, ...base.map((c) => blend(c, paler, 0.42)), ...base.map((c) => blend(c, deeper, 0.4))];
  return {hex: all.map(hex), rgb: all, none: rgb(NONE[name]), flat: Float32Array.from(all.flat(), (x) => x / 255)};
}
const built = signal({light: build('light', DARK), dark: build('dark', DARK)});

/** Takes the colors of the library: of groups, and from low to high. */
export function setColors({groups, diverging, sequential}) {
  RAMPS.light = {diverging, sequential};
  built.value = {...built.value, light: build('light', groups)};
}

export const palette = computed(() => built.value[theme.value]);
export const colorOf = (label) => (label === 255 ? NONE[theme.value] : palette.value.hex[label % 24]);

const tables = {};
/** 256 colors of a ramp as bytes, for canvases. */
export function ramp(kind) {
  const key = `${theme.value}/${kind}`;
  if (!tables[key]) {
    const stops = RAMPS[theme.value][kind].map(rgb);
    tables[key] = Uint8Array.from({length: 768}, (_, i) => {
      const t = (Math.floor(i / 3) / 255) * (stops.length - 1);
      const k = Math.min(Math.floor(t), stops.length - 2);
      return blend(stops[k], stops[k + 1], t - k)[i % 3];
    });
  }
  return tables[key];
}

/** What the style sheet says: canvases draw with the same ink. */
export const ink = computed(() => {
  document.documentElement.dataset.theme = theme.value;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(['ink', 'soft', 'line', 'grid', 'panel', 'accent', 'paper'].map((n) => [n, read(n)]));
});
