// SPDX-License-Identifier: Apache-2.0
// The texts of labs, which are written as Markdown: headings, paragraphs, lists, `code` and addresses. Everything else
// stays the text it is; nothing becomes markup.
import {h} from './api.js';

// Words of a line: `code` and https addresses by themselves.
function words(line) {
  return line.split(/(`[^`]+`|https:\/\/[^\s)]+)/).filter(Boolean).map((word) => {
    if (/^`[^`]+`$/.test(word)) return h('code', null, word.slice(1, -1));
    if (word.startsWith('https://')) return h('a', {href: word, rel: 'noreferrer', target: '_blank'}, word);
    return word;
  });
}

// One block between empty lines; lines of a paragraph were broken for a terminal and are joined.
function block(text) {
  const lines = text.split('\n');
  const heading = /^#{1,4} (.*)$/.exec(lines[0]);
  if (heading) return [h('h3', null, words(heading[1])), lines.length > 1 ? block(lines.slice(1).join('\n')) : null];
  if (!/^[-*] /.test(lines[0])) return h('p', null, words(lines.map((line) => line.trim()).join(' ')));
  const items = [];
  for (const line of lines) {
    if (/^[-*] /.test(line)) items.push(line.slice(2));
    else items[items.length - 1] += ' ' + line.trim();
  }
  return h('ul', null, items.map((item) => h('li', null, words(item))));
}

export function prose(text) {
  return h('div.prose', null, String(text || '').trim().split(/\n\s*\n/).filter(Boolean).map(block));
}
