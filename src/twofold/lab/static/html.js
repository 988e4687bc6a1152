// Markup without a build step. Text from data only ever goes in as children or attribute values: never as markup.
import htm from 'htm';
import {h} from 'preact';

export const html = htm.bind(h);
