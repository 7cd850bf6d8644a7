// Makes elements. Every text becomes a text node, so that no text of the broker can become markup.
import {pieces} from './text.js';

const SVG = 'http://www.w3.org/2000/svg';

// Returns an element. `attributes`: those that begin with "on" are listeners; true and false set or leave out;
// `children`: elements, texts, numbers, or lists of them; null is left out.
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined)
    .map((child) => child instanceof Node ? child : document.createTextNode(String(child))));
  return made;
}

// Returns a text of the broker, of a client or of a user, with marks for invisible characters.
export function shown(text, lines = false) {
  return pieces(text, lines).map((piece) =>
    piece.isMark ? element('span', {class: 'mark', title: 'an invisible character'}, piece.text) : piece.text);
}

// Sets the text of an element, if it differs: a change costs layout, and ends a selection.
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export function setShown(target, text) {
  if (target.dataset.shown === text) return;
  target.dataset.shown = text;
  target.replaceChildren(...element('i', {}, shown(text)).childNodes);
}

// Returns a field with its label.
export function field(label, input, help = null) {
  return element('label', {class: 'field'}, element('span', {}, label), input, help && element('small', {}, help));
}

export function button(label, onclick, kind = '') {
  return element('button', {type: 'button', class: kind, onclick}, label);
}

// Returns a table. `columns`: [{name, isNumber, cell(row)}]; a cell is a node, a text or a list of them. `headingOf`: the
// heading of a row: rows that follow each other and have the same one stand below it.
export function table(columns, rows, empty, caption = null, headingOf = null) {
  if (rows.length === 0) return element('p', {class: 'empty'}, empty);
  const heading = (text) => element('tr', {class: 'day'}, element('th', {scope: 'rowgroup', colspan: columns.length}, text));
  const isNew = (i) => headingOf && (i === 0 || headingOf(rows[i]) !== headingOf(rows[i - 1]));
  return element('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption || 'table'},
    element('table', {class: 'plain'},
      element('thead', {}, element('tr', {}, columns.map((column) =>
        element('th', {scope: 'col', class: column.isNumber ? 'number' : ''}, column.name)))),
      element('tbody', {}, rows.map((row, i) => [isNew(i) ? heading(headingOf(row)) : null, element('tr', {}, columns.map((column) =>
        element('td', {class: column.isNumber ? 'number' : ''}, column.cell(row))))]))));
}

// Shows a sentence for some seconds, and reads it out.
export function note(sentence, kind = '') {
  const shownNote = element('div', {class: 'note ' + kind}, shown(sentence));
  const notes = document.getElementById('notes');
  notes.append(shownNote);
  while (notes.childElementCount > 4) notes.firstElementChild.remove();
  setTimeout(() => shownNote.remove(), kind === 'bad' ? 12000 : 5000);
}

// Runs an action of a button. Shows the error if it fails; returns whether it succeeded.
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error.status !== 401) note(error.message, 'bad');
    return false;
  }
}
