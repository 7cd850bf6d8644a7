// Texts as people read them: numbers, times, and texts of the broker with every invisible character made visible.

// Control and format characters, separators of lines, halves of surrogate pairs, characters that fonts leave out, and all
// spaces but the usual one: a browser shows these as nothing, or lets them change how other characters look.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;

// Returns a visible form of an invisible character, in letters that every font has.
function visible(character) {
  const code = character.codePointAt(0);
  const names = {0: '\\0', 9: '\\t', 10: '\\n', 13: '\\r'};
  if (code in names) return names[code];
  const digits = code.toString(16).toUpperCase();
  return code < 0x100 ? '\\x' + digits.padStart(2, '0') : 'U+' + digits.padStart(4, '0');
}

// Returns pieces of a text: [{text, isMark}]. With `lines`, a line feed also begins a new line.
export function pieces(text, lines = false) {
  const found = [];
  let end = 0;
  for (const match of String(text).matchAll(INVISIBLE)) {
    if (match.index > end) found.push({text: String(text).slice(end, match.index), isMark: false});
    found.push({text: visible(match[0]), isMark: true});
    if (lines && match[0] === '\n') found.push({text: '\n', isMark: false});
    end = match.index + match[0].length;
  }
  if (end < String(text).length) found.push({text: String(text).slice(end), isMark: false});
  return found;
}

// Returns a text in one line, without marks: for titles and labels.
export function plain(text) {
  return pieces(text).map((piece) => piece.text).join('');
}

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

// Returns a count: in full up to 99,999, else with a letter.
export function count(value) {
  if (!Number.isFinite(value)) return '–';
  if (value < 100000) return whole.format(value);
  for (const [unit, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (value >= unit) return (value / unit).toFixed(value >= 100 * unit ? 0 : 1) + ' ' + letter;
  }
  return whole.format(value);
}

// Returns a count in few characters.
export function short(value) {
  return value >= 10000 && value < 100000 ? Math.round(value / 1000) + ' k' : count(value);
}

// Returns a rate in messages a second.
export function rate(value) {
  if (!Number.isFinite(value)) return '–';
  if (value > 0 && value < 10) return value.toFixed(1);
  return count(Math.round(value));
}

export function bytes(value) {
  if (!Number.isFinite(value)) return '–';
  if (value < 1024) return value + ' B';
  for (const [unit, name] of [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB']]) {
    if (value >= unit) return (value / unit).toFixed(value >= 100 * unit ? 0 : 1) + ' ' + name;
  }
  return '–';
}

// Returns a length of time, of milliseconds.
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 1000) return Math.round(ms) + ' ms';
  const seconds = ms / 1000;
  if (seconds < 60) return seconds.toFixed(seconds < 10 ? 1 : 0) + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min ' + Math.floor(seconds % 60) + ' s';
  if (seconds < 86400) return Math.floor(seconds / 3600) + ' h ' + Math.floor((seconds % 3600) / 60) + ' min';
  return Math.floor(seconds / 86400) + ' d ' + Math.floor((seconds % 86400) / 3600) + ' h';
}

// Returns a length of time in one unit.
export function age(ms) {
  if (ms < 60000) return Math.round(ms / 1000) + ' s';
  if (ms < 3600000) return Math.floor(ms / 60000) + ' min';
  return ms < 86400000 ? Math.floor(ms / 3600000) + ' h' : Math.floor(ms / 86400000) + ' d';
}

const days = new Intl.DateTimeFormat('en', {weekday: 'long', year: 'numeric', month: 'long', day: 'numeric'});

// Returns the day of a moment, in the browser's time zone.
export function day(ms) {
  const text = days.format(ms);
  return text === days.format(Date.now()) ? `Today, ${text}` : text;
}

// Returns a moment, of milliseconds since 1970, in the browser's time zone.
export function moment(ms) {
  const date = new Date(ms);
  if (!ms || Number.isNaN(date.getTime())) return '–';
  const two = (number) => String(number).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:` +
    `${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
