// The map of an autoencoder, and any row sent through it and back.
import {html} from '../html.js';
import {Groups} from '../parts.js';
import {wordsOf} from '../text.js';
import {Codes, Reconstruct} from './axes.js';

const Picture = ({run, frame}) => html`<${Codes} run=${run} frame=${frame}
  label=${`Codes of ${wordsOf(frame.arrays.points.shape[0], 'row')}, after sweep ${frame.sweep}`} />`;

const Details = ({run, frame}) => html`${frame.arrays.colors && html`<h2>Colors</h2>`}<${Groups} run=${run}
  frame=${frame} labels=${frame.arrays.colors} given=${frame.meta.color_names ?? frame.meta.target_names} />
  <${Reconstruct} run=${run} frame=${frame} />`;

const caption = ({arrays}) => wordsOf(arrays.points.shape[0], 'row');

export default {Picture, Details, caption, plane: true, selectable: true};
