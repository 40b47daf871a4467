// SPDX-License-Identifier: Apache-2.0
// The API of this server, elements made of text only, and figures as people read them.

// What came back that was not an answer: the fields of rehearse's errors.
export class ApiError extends Error {
  constructor(status, error) {
    super(error.what || `status ${status}`);
    this.status = status;
    this.where = error.where || '';
    this.fix = error.fix || '';
  }
}

async function ask(method, path, body, type) {
  const options = {method, headers: {}};
  if (body !== undefined) {
    options.headers['Content-Type'] = type || 'application/json';
    options.body = type ? body : JSON.stringify(body);
  }
  const answer = await fetch('/api/v1' + path, options);
  if (answer.status === 204) return null;
  const text = await answer.text();
  let json = null;
  try { json = JSON.parse(text); } catch { /* told below */ }
  if (!answer.ok) throw new ApiError(answer.status, json?.error || {what: `the server said ${answer.status}`});
  return json;
}

export const get = (path) => ask('GET', path);
export const post = (path, body) => ask('POST', path, body);
export const remove = (path) => ask('DELETE', path);
export const send = (path, file) => ask('POST', path, file, 'application/octet-stream');

const kept = new Map();
// The same answer every time: catalogues do not change while the server runs.
export function once(path) {
  if (!kept.has(path)) kept.set(path, get(path).catch((e) => { kept.delete(path); throw e; }));
  return kept.get(path);
}

// Everybody who wants to know of jobs, told by one stream.
const listeners = new Set();
export function onJob(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
export function listen() {
  const events = new EventSource('/api/v1/events');
  events.addEventListener('job', (event) => {
    const job = JSON.parse(event.data);
    for (const listener of [...listeners]) listener(job);
  });
}

// Resolves with the job once it has ended; tells `each` of every change.
export function follow(id, each) {
  return new Promise((resolve, reject) => {
    let over = false;
    const see = (job) => {
      if (over || job.id !== id) return;
      each?.(job);
      if (job.state === 'queued' || job.state === 'running') return;
      over = true;
      stop();
      clearInterval(timer);
      resolve(job);
    };
    const stop = onJob(see);
    // The stream may have been cut, or the job may have ended before we listened.
    const look = () => get('/jobs/' + id).then(see, (e) => { stop(); clearInterval(timer); reject(e); });
    const timer = setInterval(look, 3000);
    look();
  });
}

// h('p.note', {title: 'x', onclick: f}, 'text', child): an element. Strings become text nodes, so names from
// traces are never markup.
export function h(what, attributes, ...children) {
  const [tag, ...classes] = what.split('.');
  const element = document.createElement(tag || 'div');
  if (classes.length) element.className = classes.join(' ');
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'selected' || name === 'disabled') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}
export function append(element, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

// Brings an element into view, without a ride for readers who asked for none.
export function show(element) {
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  element.scrollIntoView({block: 'nearest', behavior: still ? 'instant' : 'smooth'});
}

export function tell(error) {
  const text = error instanceof ApiError && error.fix ? `${error.message}: ${error.fix}` : error.message || String(error);
  const box = h('div.notice', null, h('span', null, text),
    h('button.quiet', {type: 'button', 'aria-label': 'Close', onclick: () => box.remove()}, '✕'));
  document.getElementById('notices').append(box);
  setTimeout(() => box.remove(), 12000);
}
// Runs an action of a button and tells what went wrong.
export const doing = (action) => async (event) => {
  const button = event?.currentTarget;
  if (button) button.disabled = true;
  try { await action(event); } catch (error) { tell(error); } finally { if (button) button.disabled = false; }
};

const three = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));
export function duration(ns) {
  if (ns === undefined || ns === null) return '–';
  for (const [unit, size] of [['h', 3600e9], ['min', 60e9], ['s', 1e9], ['ms', 1e6], ['us', 1e3]]) {
    if (Math.abs(ns) >= size) return `${three(ns / size)} ${unit}`;
  }
  return `${ns} ns`;
}
export function rate(bytesPerSecond) {
  return bytesPerSecond >= 1e9 ? `${three(bytesPerSecond / 1e9)} GB/s` : `${three(bytesPerSecond / 1e6)} MB/s`;
}
// "1 step", "4 steps".
export const counted = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;
export function bytes(n) {
  for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (n >= size) return `${three(n / size)} ${unit}`;
  }
  return `${n} B`;
}
export const percent = (x) => `${x > 0 ? '+' : ''}${(100 * x).toFixed(1)} %`;
export const ago = (seconds) => {
  const s = Math.max(0, Date.now() / 1000 - seconds);
  return s < 60 ? 'just now' : s < 3600 ? `${Math.floor(s / 60)} min ago` : s < 86400 ? `${Math.floor(s / 3600)} h ago`
    : new Date(1000 * seconds).toLocaleDateString();
};
