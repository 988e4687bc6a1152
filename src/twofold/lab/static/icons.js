// Line drawings for buttons; the word for it is the button's own.
import {html} from './html.js';

const PATHS = {
  play: 'M6 4l11 6.5L6 17z', pause: 'M6 4v13M14 4v13', forward: 'M5 4l8 6.5L5 17zM16 4v13',
    back: 'M15 4l-8 6.5L15 17zM4 4v13',
  stop: 'M5 5h11v11H5z', first: 'M16 4l-7 6.5L16 17M5 4v13',
    sun: 'M10.5 6.5a4 4 0 100 8 4 4 0 000-8zM10.5 1v2M10.5 18v2'
    + 'M1 10.5h2M18 10.5h2M4 4l1.4 1.4M15.6 15.6L17 17M4 17l1.4-1.4M15.6 5.4L17 4',
  moon: 'M17 12.5A7 7 0 118.5 4a5.5 5.5 0 008.5 8.5z', half: 'M10.5 3a7.5 7.5 0 100 15zM10.5 3a7.5 7.5 0 010 15',
  lasso: 'M10 4c4.5 0 8 2 8 5s-3.5 5-8 5-8-2-8-5 3.500-5 8-5M6 13c-1.500 1.500-.5 4 1.500 4.500',
    move: 'M10.500 2v17M2 10.500h17M8 4.500l2.500-2.500L13 4.500M8 16.500l2.500 2.500 2.500-2.500'
      + 'M4.500 8L2 10.500 4.500 13'
      + 'M16.500 8l2.500 2.500-2.500 2.500',
  home: 'M4 4h4M4 4v4M17 4h-4M17 4v4M4 17h4M4 17v-4M17 17h-4M17 17v-4', cross: 'M5 5l11 11M16 5L5 16',
    copy: 'M7 7h10v10H7zM4 13V4h9',
  file: 'M10.500 14V3M6 7.500L10.500 3 15 7.500M3 13v4h15v-4',
};

export const Icon = ({name}) => html`<svg class="icon" viewBox="0 0 21 21" width="18" height="18"
  aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
