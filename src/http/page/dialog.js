// Dialogs: forms above the page. Escape closes them, and the focus returns to the button.
import {attempt, element, shown} from './dom.js';
import {plain} from './text.js';

// Opens a form. `fields`: nodes; `action`: called with the form when it is sent; the dialog closes if it succeeds.
export function form(title, fields, label, action, kind = '') {
  const cancel = element('button', {type: 'button', class: 'quiet', onclick: () => dialog.close()}, 'Cancel');
  const submit = element('button', {type: 'submit', class: kind || 'main'}, label);
  const body = element('form', {method: 'dialog', onsubmit: async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    const isDone = await attempt(() => action(body));
    submit.disabled = false;
    if (isDone) dialog.close();
  }}, element('h2', {}, title), fields, element('div', {class: 'buttons'}, cancel, submit));
  const dialog = element('dialog', {'aria-label': title, onclose: () => dialog.remove()}, body);
  document.body.append(dialog);
  dialog.showModal();
  return {dialog, submit};
}

// Asks for a name to be typed before something that cannot be undone. `sentence`: says what will happen. Invisible
// characters of the name can be typed as they are shown.
export function confirmTyped(title, sentence, name, label, action) {
  const typed = element('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', name: 'typed',
    oninput: () => { submit.disabled = typed.value !== name && typed.value !== plain(name); }});
  const {submit} = form(title, [
    element('p', {}, sentence),
    element('label', {class: 'field'}, element('span', {}, 'Type ', element('code', {}, shown(name)), ' to confirm'), typed),
  ], label, action, 'danger');
  submit.disabled = true;
  typed.focus();
}

export function closeAll() {
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
}
