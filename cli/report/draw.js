// SPDX-License-Identifier: Apache-2.0
// What all pictures share: texts of times and sizes, colours of the page's style, hover texts. Text from traces reaches
// the page as text nodes only.
'use strict';
const rehearse = {};

(() => {
  const steps = [[1e9, 's', 1], [1e6, 'ms', 1e3], [1e3, 'us', 1e6]];

  // Three significant digits with a unit, as everywhere else.
  const figure = (value) => {
    const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return value.toFixed(digits);
  };
  rehearse.duration = (ns) => {
    if (!(Math.abs(ns) >= 1)) return '0 ns';
    if (Math.abs(ns) >= 120e9) return `${figure(ns / 60e9)} min`;
    for (const [size, unit] of steps) if (Math.abs(ns) >= size) return `${figure(ns / size)} ${unit}`;
    return `${Math.round(ns)} ns`;
  };
  rehearse.bytes = (n) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let i = 0;
    while (n >= 1024 && i + 1 < units.length) { n /= 1024; ++i; }
    return i === 0 ? `${n} B` : `${figure(n)} ${units[i]}`;
  };
  rehearse.bandwidth = (n) => {
    const units = ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s'];
    let i = 0;
    while (n >= 1000 && i + 1 < units.length) { n /= 1000; ++i; }
    return `${figure(n)} ${units[i]}`;
  };
  rehearse.percent = (share) => `${(100 * share).toFixed(1)} %`;
  rehearse.count = (n) => n.toLocaleString('en-US');
  rehearse.clip = (text, most) => (text.length > most ? text.slice(0, most - 1) + '…' : text);

  // Words in at most so many lines of at most so many letters.
  rehearse.lines = (text, letters, most) => {
    const out = [];
    let rest = text;
    while (rest.length > letters && out.length + 1 < most) {
      const space = rest.lastIndexOf(' ', letters);
      const end = space > 0 ? space : letters;
      out.push(rest.slice(0, end));
      rest = rest.slice(end).trimStart();
    }
    out.push(rehearse.clip(rest, letters));
    return out;
  };

  // Ranks as ranges: [0,1,2,5] -> "0-2,5".
  rehearse.ranges = (ranks) => {
    const out = [];
    for (let i = 0; i < ranks.length; ++i) {
      let last = i;
      while (last + 1 < ranks.length && ranks[last + 1] === ranks[last] + 1) ++last;
      out.push(last > i ? `${ranks[i]}-${ranks[last]}` : `${ranks[i]}`);
      i = last;
    }
    return out.join(',');
  };

  // A colour of page.css by name, as it is now (light or dark).
  rehearse.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  // Calls back when the reader's light or dark setting changes.
  rehearse.onLook = (redraw) => {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  };
  // Calls back before pictures are needed for a sheet (in its width and its colours, which are light) and after.
  rehearse.onSheet = (redraw) => {
    addEventListener('beforeprint', () => redraw(true));
    addEventListener('afterprint', () => redraw(false));
  };
  rehearse.onSheet((sheet) => { document.documentElement.toggleAttribute('data-sheet', sheet); });

  rehearse.element = (parent, name, attributes = {}, text = null) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };

  // Use of a link as a colour, from grey over amber to red.
  let ramp = null;
  rehearse.onLook(() => { ramp = null; });
  rehearse.onSheet(() => { ramp = null; });
  rehearse.heat = (share) => {
    ramp = ramp || d3.scaleLinear().domain([0, 0.03, 0.5, 1]).clamp(true)
      .range(['idle', 'hidden', 'communication', 'bad'].map(rehearse.colour)).interpolate(d3.interpolateLab);
    return ramp(share);
  };

  let tip = null;
  rehearse.tip = (event, lines) => {
    if (!tip) tip = rehearse.element(document.body, 'div', {class: 'tip', role: 'status'});
    if (!lines) { tip.hidden = true; return; }
    tip.replaceChildren();
    for (const line of lines) rehearse.element(tip, 'div', {}, line);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const y = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  };

  rehearse.legend = (parent, entries) => {
    const list = rehearse.element(parent, 'ul', {class: 'legend'});
    for (const [colour, name] of entries) {
      const item = rehearse.element(list, 'li');
      const swatch = rehearse.element(item, 'i');
      swatch.style.background = `var(--${colour})`;
      item.append(name);
    }
    return list;
  };

  rehearse.sheet = 720; // pixels of CSS across A4 or Letter between usual margins

  // An SVG as wide as its place, drawn again when that changes.
  rehearse.svg = (place, height, draw) => {
    const svg = d3.select(place).append('svg').attr('role', 'img').attr('width', '100%');
    let width = 0;
    const redraw = () => {
      svg.selectAll('*').remove();
      const tall = typeof height === 'function' ? height(width) : height;
      svg.attr('viewBox', `0 0 ${width} ${tall}`).attr('height', tall);
      draw(svg, width, tall);
    };
    const fit = () => {
      const now = Math.max(280, Math.floor(place.getBoundingClientRect().width));
      if (now === width) return;
      width = now;
      redraw();
    };
    new ResizeObserver(fit).observe(place);
    fit();
    rehearse.onLook(redraw);
    // Drawn for the width of a sheet: shrunk from the screen's its words could not be read.
    rehearse.onSheet((sheet) => {
      width = sheet ? rehearse.sheet : 0;
      if (sheet) redraw(); else fit();
    });
    return {svg, redraw};
  };
})();
