// SPDX-License-Identifier: Apache-2.0
// The timeline: one row per lane on a canvas that is as large as what is seen. Only entries in view are visited, and of
// those that fall on one pixel only the first, so that drawing costs what the screen has, not what the run has.
'use strict';

(() => {
  const AXIS = 26, NEVER = -1;
  const kindColour = {compute: 'compute', communication: 'communication', copy: 'copy', storage: 'storage',
    host: 'host', launch: 'launch', sync: 'sync'};
  const legend = [['compute', 'compute'], ['communication', 'communication'], ['wait', 'waiting for others'], ['copy', 'copy'],
    ['storage', 'storage'], ['host', 'host'], ['launch', 'launch'], ['sync', 'synchronise']];

  // First index whose value is not below `wanted`.
  const lowerBound = (values, wanted) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low;
  };

  const decodeLane = (lane) => {
    const n = Math.min(lane.start.length, lane.duration.length, lane.label.length);
    const start = new Float64Array(n), end = new Float64Array(n), call = new Int32Array(n).fill(NEVER);
    let at = 0;
    for (let i = 0; i < n; ++i) {
      at += lane.start[i];
      start[i] = at;
      end[i] = at + lane.duration[i];
    }
    let row = 0;
    (lane.callAt || []).forEach((step, i) => { row += step; if (row < n) call[row] = lane.call[i]; });
    return {name: lane.name, start, end, call, label: lane.label, count: lane.count, busy: lane.busy, resolution: lane.resolution || 0, open: lane.open || null};
  };

  // data: `timeline` of the page's data; run: the run it belongs to
  rehearse.timeline = (place, data, run) => {
    const ranks = data.ranks.map((rank) => ({rank: rank.rank, lanes: rank.lanes.map(decodeLane)}));
    const isHost = (lane) => lane.name.startsWith('thread ');
    const kindOf = (label) => kindColour[data.kinds[label]] || 'host';
    const nameOf = (label, call) => data.names[label] || (call !== NEVER && data.calls[call] ? data.calls[call][2] : data.kinds[label] || 'operation');
    let end = 1, entries = 0;
    const members = new Map();  // call -> [[rank index, lane index, entry]]
    const coarsest = d3.max(ranks, (r) => d3.max(r.lanes, (l) => (isHost(l) ? 0 : l.resolution))) || 0;
    ranks.forEach((rank, r) => rank.lanes.forEach((lane, l) => {
      entries += lane.start.length;
      for (let i = 0; i < lane.end.length; ++i) {
        if (lane.end[i] > end) end = lane.end[i];
        if (lane.call[i] === NEVER) continue;
        if (!members.has(lane.call[i])) members.set(lane.call[i], []);
        members.get(lane.call[i]).push([r, l, i]);
      }
      if (lane.open) end = Math.max(end, lane.open.start * 1.06);
    }));
    const blamed = new Set(run.culprits.filter((c) => c.rank !== undefined).map((c) => c.rank));
    const fine = ranks.filter((rank) => coarsest === 0 || rank.lanes.some((lane) => !isHost(lane) && lane.resolution < coarsest));
    const someCoarse = fine.length > 0 && fine.length < ranks.length;
    // Where not all fit, those to blame come first.
    const FITS = 16;
    const order = ranks.map((rank, r) => r);
    if (ranks.length > FITS) order.sort((a, b) => blamed.has(ranks[b].rank) - blamed.has(ranks[a].rank) || a - b);

    // Controls
    const tools = rehearse.element(place, 'div', {class: 'bar-tools'});
    const search = rehearse.element(tools, 'input', {type: 'search', placeholder: 'Search operations', 'aria-label': 'Search operations'});
    const button = (text, title, act) => {
      const node = rehearse.element(tools, 'button', {type: 'button', title, 'aria-label': title}, text);
      node.addEventListener('click', act);
      return node;
    };
    button('‹', 'Previous match', () => step(-1));
    button('›', 'Next match', () => step(1));
    const found = rehearse.element(tools, 'span', {class: 'note', role: 'status'});
    button('+', 'Zoom in', () => zoomBy(2));
    button('−', 'Zoom out', () => zoomBy(0.5));
    button('Fit', 'Show the whole run', () => canvas.call(zoom.transform, d3.zoomIdentity));
    const check = (text, on) => {
      const label = rehearse.element(tools, 'label');
      const box = rehearse.element(label, 'input', {type: 'checkbox'});
      box.checked = on;
      label.append(text);
      box.addEventListener('change', () => { layout(); });
      return box;
    };
    const withHost = check('host threads', ranks.length <= 2);
    const withPath = data.path.length ? check('critical path', true) : {checked: false};
    const withLinks = check('link collectives', true);
    const allRanks = someCoarse ? check(`all ${rehearse.count(ranks.length)} ranks`, false) : {checked: true};
    rehearse.legend(place, legend.filter(([kind]) => kind === 'wait' || data.kinds.includes(kind)));

    const frame = rehearse.element(place, 'div', {class: 'timeline'});
    const rowsBox = rehearse.element(frame, 'div', {class: 'rows'});
    const spacer = rehearse.element(rowsBox, 'div');
    const node = rehearse.element(spacer, 'canvas', {tabindex: '0', role: 'application',
      'aria-label': 'Timeline. Arrows move, plus and minus zoom, zero shows all, Shift and arrows move from operation to operation.'});
    node.style.position = 'sticky';
    node.style.top = '0';
    const chosenBox = rehearse.element(frame, 'div', {class: 'chosen', role: 'status'});
    const canvas = d3.select(node);
    const context = node.getContext('2d');

    let sheet = false;  // drawn for paper
    let rows = [], width = 0, height = 0, gutter = 120, rowHeight = 18;
    let transform = d3.zoomIdentity, chosen = null, matches = [], matched = null, matchAt = -1;
    let colours = {}, labelColour = [], pending = false, rowOf = new Map();
    const base = d3.scaleLinear().domain([0, end]);
    const api = {drawn: 0, ms: 0, entries};

    const layout = () => {
      rows = [];
      rowOf = new Map();
      const shown = new Set(allRanks.checked ? ranks : fine);
      let odd = true;
      order.forEach((r) => {
        const rank = ranks[r];
        if (!shown.has(rank)) return;
        let first = true;
        odd = !odd;
        rank.lanes.forEach((lane, l) => {
          if ((isHost(lane) && !withHost.checked) || (!lane.start.length && !lane.open)) return;
          rowOf.set(`${r}/${l}`, rows.length);
          rows.push({r, l, rank: rank.rank, lane, first, odd});
          first = false;
        });
      });
      rowHeight = rows.length > 200 ? 13 : 19;
      const whole = AXIS + rows.length * rowHeight + 4;
      spacer.style.height = `${whole}px`;
      const small = matchMedia('(max-width: 640px)').matches;
      gutter = small ? 84 : 158;
      height = Math.min(whole, sheet ? 900 : small ? 420 : 640);
      resize();
    };

    const resize = () => {
      width = sheet ? rehearse.sheet : Math.max(280, rowsBox.clientWidth);
      const scale = sheet ? 2 : window.devicePixelRatio || 1;
      node.width = Math.round(width * scale);
      node.height = Math.round(height * scale);
      node.style.width = `${width}px`;
      node.style.height = `${height}px`;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      base.range([gutter, width - 10]);
      zoom.extent([[gutter, 0], [width - 10, height]]).translateExtent([[gutter, 0], [width - 10, height]]);
      draw();
    };

    const look = () => {
      colours = {};
      for (const name of ['paper', 'panel', 'ink', 'soft', 'line', 'grid', 'wait', 'bad', 'path', 'pick', ...Object.values(kindColour)]) colours[name] = rehearse.colour(name);
      labelColour = data.kinds.map((kind, label) => colours[kindOf(label)]);
    };

    const scaleNow = () => transform.rescaleX(base);
    const rowTop = (i) => AXIS + i * rowHeight - rowsBox.scrollTop;

    // Visits what is to be seen of a lane: see(entry, x, width).
    const visit = (lane, x, see) => {
      const [from, to] = [x.invert(gutter), x.invert(width)];
      let i = Math.max(0, lowerBound(lane.start, from) - 1);
      for (let back = 0; back < 8 && i > 0 && lane.end[i - 1] > from; ++back) --i;
      while (i < lane.start.length && lane.start[i] < to) {
        const left = x(lane.start[i]), right = x(lane.end[i]);
        if (right >= gutter) see(i, left, right - left);
        if (right - left >= 1) { ++i; continue; }
        // The rest of this pixel, but for a last entry that reaches beyond it.
        const edge = x.invert(Math.floor(left) + 1);
        let next = lowerBound(lane.start, edge);
        if (next - 1 > i && lane.end[next - 1] > edge) --next;
        i = Math.max(i + 1, next);
      }
    };

    // Colours and alphas are only set where they change: that costs more than the boxes.
    let pen = '', ink = -1;
    const paint = (left, top, wide, tall, colour, alpha) => {
      const from = left > gutter ? left : gutter;
      const right = left + (wide > 0.8 ? wide : 0.8), to = right < width ? right : width;
      if (to <= from) return;
      if (ink !== alpha) { context.globalAlpha = alpha; ink = alpha; }
      if (pen !== colour) { context.fillStyle = colour; pen = colour; }
      context.fillRect(from, top, to - from, tall);
      ++api.drawn;
    };
    const write = (text, left, top, colour, alpha) => {
      context.globalAlpha = ink = alpha;
      context.fillStyle = pen = colour;
      context.fillText(text, left, top);
    };

    // Words on a box: dark or light, whichever is read better on what is seen of it.
    const inks = new Map();
    const inkOn = (colour, alpha) => {
      const key = `${colour}/${colours.paper}/${Math.round(10 * alpha)}`;
      if (!inks.has(key)) {
        const seen = d3.rgb(d3.interpolateRgb(colours.paper, colour)(alpha));
        const [r, g, b] = [seen.r, seen.g, seen.b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
        inks.set(key, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? '#14171b' : '#fff');
      }
      return inks.get(key);
    };

    const drawRow = (row, i, x) => {
      const top = rowTop(i) + 2, tall = rowHeight - 4, lane = row.lane;
      pen = '';
      ink = -1;
      visit(lane, x, (e, left, wide) => {
        const label = lane.label[e], call = lane.call[e];
        let alpha = 1;
        if (lane.count && lane.count[e] > 1) alpha = 0.3 + 0.7 * Math.min(1, lane.busy[e] / Math.max(1, lane.end[e] - lane.start[e]));
        const hit = !matched || matched[label] || (call !== NEVER && matchedCalls.has(call));
        if (!hit) alpha *= 0.18;
        paint(left, top, wide, tall, labelColour[label] || colours.host, alpha);
        const info = call === NEVER ? null : data.calls[call];
        const waited = info && info[6] > lane.start[e] ? x(Math.min(info[6], lane.end[e])) : left;
        if (waited > left) paint(left, top, waited - left, tall, colours.wait, alpha);
        if (wide > 34 && tall > 10) {
          const from = Math.max(gutter, left) + 4, room = Math.min(width, left + wide) - from - 2;
          if (room > 26) {
            const under = waited > from + 20 ? colours.wait : labelColour[label] || colours.host;
            const text = (lane.count && lane.count[e] > 1 ? `${lane.count[e]} × ` : '') + nameOf(label, call);
            write(text.slice(0, Math.floor(room / 5.9)), from, top + tall / 2 + 0.5, inkOn(under, alpha), hit ? 1 : 0.45);
          }
        }
      });
      if (lane.open) {
        const left = Math.max(gutter, x(lane.open.start));
        if (left < width) {
          paint(left, top, width - left, tall, colours.bad, 0.28);
          const name = nameOf(lane.open.label, lane.open.call === undefined ? NEVER : lane.open.call);
          write(rehearse.clip(`never ends: ${name}`, Math.max(6, Math.floor((width - left - 8) / 5.9))), left + 5, top + tall / 2 + 0.5, colours.bad, 1);
        }
      }
      context.globalAlpha = 1;
    };

    const drawPath = (x) => {
      const [from, to] = [x.invert(gutter), x.invert(width)];
      context.strokeStyle = colours.path;
      context.fillStyle = colours.path;
      context.lineWidth = 1.2;
      let before = null, lastX = -1;
      let i = Math.max(0, lowerBound(pathEnds, from) - 1);
      for (; i < data.path.length && data.path[i][2] < to; ++i) {
        const [rank, lane, begin, finish] = data.path[i];
        const r = rankAt.get(rank);
        let row = rowOf.get(`${r}/${lane}`);
        if (row === undefined) row = firstRow.get(r);
        if (row === undefined) { before = null; continue; }
        const left = x(begin), right = x(finish), y = rowTop(row) + rowHeight - 3;
        if (right - lastX < 0.7 && before === row) continue;
        lastX = right;
        context.fillRect(Math.max(gutter, left), y, Math.max(0.8, Math.min(width, right) - Math.max(gutter, left)), 2.5);
        if (before !== null && before !== row && left >= gutter) {
          context.globalAlpha = 0.55;
          context.beginPath();
          context.moveTo(left, rowTop(before) + rowHeight - 2);
          context.lineTo(left, y + 1);
          context.stroke();
          context.globalAlpha = 1;
        }
        before = row;
      }
    };
    const pathEnds = Float64Array.from(data.path, (part) => part[3]);
    const rankAt = new Map(ranks.map((rank, r) => [rank.rank, r]));
    let firstRow = new Map();

    // Lines between the arrivals of the members of a call, and the stretch from the first arrival to the end.
    const drawCall = (call, x, strong) => {
      const places = (members.get(call) || []).map(([r, l, e]) => [rowOf.get(`${r}/${l}`), ranks[r].lanes[l], e]).filter(([row]) => row !== undefined)
        .sort((a, b) => a[0] - b[0]);
      if (!places.length) return;
      context.strokeStyle = strong ? colours.pick : colours.soft;
      context.lineWidth = strong ? 1.6 : 0.7;
      context.globalAlpha = strong ? 1 : 0.45;
      context.beginPath();
      let pen = false;
      for (const [row, lane, e] of places) {
        const px = x(lane.start[e]), py = rowTop(row) + rowHeight / 2;
        if (px < gutter || px > width) { pen = false; continue; }
        if (pen) context.lineTo(px, py); else context.moveTo(px, py);
        pen = true;
      }
      context.stroke();
      if (strong) {
        for (const [row, lane, e] of places) {
          const left = Math.max(gutter, x(lane.start[e]));
          context.strokeRect(left, rowTop(row) + 1.5, Math.max(1.5, Math.min(width, x(lane.end[e])) - left), rowHeight - 3);
        }
      }
      context.globalAlpha = 1;
    };

    const draw = () => {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => { pending = false; drawNow(); });
    };

    const drawNow = () => {
      const began = performance.now();
      api.drawn = 0;
      look();
      const x = scaleNow();
      context.clearRect(0, 0, width, height);
      context.font = '11px system-ui, sans-serif';
      context.textBaseline = 'middle';
      const firstSeen = Math.max(0, Math.floor(rowsBox.scrollTop / rowHeight)), lastSeen = Math.min(rows.length, Math.ceil((rowsBox.scrollTop + height - AXIS) / rowHeight) + 1);
      firstRow = new Map();
      rows.forEach((row, i) => { if (!firstRow.has(row.r)) firstRow.set(row.r, i); });
      context.save();
      context.beginPath();
      context.rect(0, AXIS, width, height - AXIS);
      context.clip();
      // Ranks in turn on paper and panel.
      for (let i = firstSeen; i < lastSeen; ++i) {
        if (rows[i].odd) { context.fillStyle = colours.panel; context.fillRect(0, rowTop(i), width, rowHeight); }
      }
      const ticks = x.ticks(Math.max(3, Math.floor((width - gutter) / 110)));
      context.strokeStyle = colours.grid;
      context.lineWidth = 1;
      for (const tick of ticks) {
        const px = Math.round(x(tick)) + 0.5;
        if (px < gutter) continue;
        context.beginPath(); context.moveTo(px, AXIS); context.lineTo(px, height); context.stroke();
      }
      for (let i = firstSeen; i < lastSeen; ++i) drawRow(rows[i], i, x);
      if (withLinks.checked) {
        const seen = new Set();
        for (let i = firstSeen; i < lastSeen && seen.size <= 40; ++i) {
          visit(rows[i].lane, x, (e, left, wide) => { if (rows[i].lane.call[e] !== NEVER && wide > 3) seen.add(rows[i].lane.call[e]); });
        }
        if (seen.size <= 40) for (const call of seen) drawCall(call, x, false);
      }
      if (withPath.checked) drawPath(x);
      if (chosen) {
        const lane = ranks[chosen.r].lanes[chosen.l], call = lane.call[chosen.e];
        if (call !== NEVER) drawCall(call, x, true);
        const row = rowOf.get(`${chosen.r}/${chosen.l}`);
        if (row !== undefined) {
          const left = Math.max(gutter, x(lane.start[chosen.e]));
          context.strokeStyle = colours.pick;
          context.lineWidth = 2;
          context.strokeRect(left, rowTop(row) + 1, Math.max(2, Math.min(width - 1, x(lane.end[chosen.e])) - left), rowHeight - 2);
        }
      }
      // Labels of the rows
      for (let i = firstSeen; i < lastSeen; ++i) {
        const row = rows[i], y = rowTop(i) + rowHeight / 2 + 0.5;
        context.fillStyle = row.odd ? colours.panel : colours.paper;
        context.fillRect(0, rowTop(i), gutter - 1, rowHeight);
        if (row.first) {
          context.fillStyle = blamed.has(row.rank) ? colours.bad : colours.ink;
          context.fillText(`rank ${row.rank}`, 8, y);
        }
        if (gutter > 100 || !row.first) {
          context.fillStyle = colours.soft;
          context.textAlign = 'right';
          // "stream 7 compute" without its first word, which the colours tell.
          context.fillText(rehearse.clip(row.lane.name.replace(/^(stream|thread|proxy) /, ''), row.first ? 15 : gutter > 100 ? 24 : 11), gutter - 8, y);
          context.textAlign = 'left';
        }
      }
      context.strokeStyle = colours.line;
      context.beginPath(); context.moveTo(gutter - 0.5, AXIS); context.lineTo(gutter - 0.5, height); context.stroke();
      context.restore();
      context.fillStyle = colours.soft;
      context.textAlign = 'center';
      const digits = rehearse.axisFormat(x.domain()[1] - x.domain()[0], ticks);
      for (const tick of ticks) if (x(tick) >= gutter + 10 && x(tick) < width - 24) context.fillText(digits(tick), x(tick), AXIS / 2);
      context.textAlign = 'left';
      context.strokeStyle = colours.line;
      context.beginPath(); context.moveTo(0, AXIS - 0.5); context.lineTo(width, AXIS - 0.5); context.stroke();
      api.ms = performance.now() - began;
    };

    // What lies under a point of the canvas.
    const at = (px, py) => {
      if (py < AXIS || px < gutter) return null;
      const i = Math.floor((py - AXIS + rowsBox.scrollTop) / rowHeight), row = rows[i];
      if (!row) return null;
      const x = scaleNow(), time = x.invert(px), slack = x.invert(px + 2) - time;
      let e = lowerBound(row.lane.start, time + slack) - 1;
      for (let back = 0; back < 4 && e >= 0; ++back, --e) {
        if (row.lane.end[e] >= time - slack) return {r: row.r, l: row.l, e};
      }
      return null;
    };

    const facts = ({r, l, e}) => {
      const lane = ranks[r].lanes[l], call = lane.call[e], info = call === NEVER ? null : data.calls[call];
      const many = lane.count && lane.count[e] > 1;
      const out = [['rank', ranks[r].rank], ['lane', lane.name], ['start', rehearse.duration(lane.start[e])], ['duration', rehearse.duration(lane.end[e] - lane.start[e])]];
      if (many) out.push(['operations', rehearse.count(lane.count[e])], ['busy', rehearse.percent(lane.busy[e] / Math.max(1, lane.end[e] - lane.start[e]))]);
      if (info) {
        out.push(['call', `${info[2]} ${info[1]} of ${rehearse.clip(info[0], 80)}`]);
        if (info[4] > 0) out.push(['bytes', rehearse.bytes(info[4])]);
        if (info[3]) out.push(['algorithm', info[3]]);
        out.push(['waited', rehearse.duration(Math.max(0, Math.min(info[6], lane.end[e]) - lane.start[e]))], ['last to come', `rank ${info[8]}, ${rehearse.duration(info[6] - info[5])} after the first`]);
      }
      return {title: (many ? 'mostly ' : '') + nameOf(lane.label[e], call), rows: out};
    };

    const choose = (what) => {
      chosen = what;
      chosenBox.replaceChildren();
      if (!what) {
        const left = someCoarse ? ` Of ${rehearse.count(ranks.length - fine.length)} ranks only GPU lanes are here, with operations closer than ${rehearse.duration(coarsest)} drawn as one; rehearse run --perfetto writes them all.` : '';
        const fineness = !someCoarse && coarsest > 0 ? ` Operations closer than ${rehearse.duration(coarsest)} are drawn as one.` : '';
        const hostless = someCoarse ? 0 : ranks.filter((rank) => rank.lanes.some((lane) => isHost(lane) && !lane.start.length && lane.resolution)).length;
        const hosts = hostless ? ` Host threads of ${rehearse.count(hostless)} ranks are left out.` : '';
        chosenBox.append(`${rehearse.count(run.operations || entries)} operations on ${rehearse.count(ranks.length)} ranks.${left}${fineness}${hosts} Nothing is selected.`);
      } else {
        const {title, rows: lines} = facts(what);
        rehearse.element(chosenBox, 'b', {}, rehearse.clip(title, 300));
        const list = rehearse.element(chosenBox, 'dl');
        for (const [name, value] of lines) {
          const pair = rehearse.element(list, 'div');
          rehearse.element(pair, 'dt', {}, name);
          rehearse.element(pair, 'dd', {}, `${value}`);
        }
      }
      draw();
    };

    // Brings a stretch of time into view, and a row.
    const show = (from, to, row) => {
      const [a, b] = [base(from), base(to)];
      const span = width - 10 - gutter;
      const k = Math.min(zoom.scaleExtent()[1], Math.max(1, span / Math.max(1e-9, b - a)));
      canvas.call(zoom.transform, d3.zoomIdentity.translate(gutter - k * a, 0).scale(k));
      if (row === undefined) return;
      const top = row * rowHeight;
      if (top < rowsBox.scrollTop || top > rowsBox.scrollTop + height - AXIS - rowHeight) rowsBox.scrollTop = Math.max(0, top - height / 2);
    };
    const showEntry = (what) => {
      const lane = ranks[what.r].lanes[what.l], [from, to] = scaleNow().domain();
      const visible = lane.start[what.e] >= from && lane.end[what.e] <= to && (lane.end[what.e] - lane.start[what.e]) * 400 > to - from;
      const row = rowOf.get(`${what.r}/${what.l}`);
      const length = Math.max(1, lane.end[what.e] - lane.start[what.e]);
      if (!visible) show(Math.max(0, lane.start[what.e] - 6 * length), Math.min(end, lane.end[what.e] + 6 * length), row);
      else if (row !== undefined) show(from, to, row);
    };

    const zoom = d3.zoom().scaleExtent([1, Math.max(20, end / 200)])
      .filter(() => (d3.event.type === 'wheel' ? d3.event.ctrlKey || d3.event.metaKey : !d3.event.button))
      .wheelDelta(() => -d3.event.deltaY * (d3.event.deltaMode === 1 ? 0.05 : d3.event.deltaMode ? 1 : 0.004))
      .on('zoom', () => { transform = d3.event.transform; draw(); });
    canvas.call(zoom).on('dblclick.zoom', null);
    const zoomBy = (factor) => canvas.call(zoom.scaleBy, factor);
    node.addEventListener('wheel', (event) => {
      if (event.ctrlKey || event.metaKey || Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      canvas.call(zoom.translateBy, -event.deltaX / transform.k, 0);
    }, {passive: false});
    canvas.on('click', () => { const [px, py] = d3.mouse(node); choose(at(px, py)); });
    canvas.on('dblclick', () => { const [px, py] = d3.mouse(node); const hit = at(px, py); if (hit) { choose(hit); showEntry(hit); } });
    canvas.on('mousemove', () => {
      const [px, py] = d3.mouse(node), hit = at(px, py);
      if (!hit || d3.event.buttons) { rehearse.tip(); return; }
      const {title, rows: lines} = facts(hit);
      rehearse.tip(d3.event, [rehearse.clip(title, 160), ...lines.map(([name, value]) => `${name}: ${value}`)]);
    }).on('mouseleave', () => rehearse.tip());
    node.addEventListener('keydown', (event) => {
      const span = width - gutter;
      const keys = {
        ArrowLeft: () => (event.shiftKey ? stepEntry(-1) : canvas.call(zoom.translateBy, 0.15 * span / transform.k, 0)),
        ArrowRight: () => (event.shiftKey ? stepEntry(1) : canvas.call(zoom.translateBy, -0.15 * span / transform.k, 0)),
        ArrowUp: () => (event.shiftKey ? stepRow(-1) : rowsBox.scrollBy(0, -3 * rowHeight)),
        ArrowDown: () => (event.shiftKey ? stepRow(1) : rowsBox.scrollBy(0, 3 * rowHeight)),
        '+': () => zoomBy(2), '=': () => zoomBy(2), '-': () => zoomBy(0.5), 0: () => canvas.call(zoom.transform, d3.zoomIdentity),
        f: () => chosen && showEntry(chosen), '/': () => search.focus(), Escape: () => choose(null),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    const stepEntry = (by) => {
      if (!chosen) { if (rows.length) choose({r: rows[0].r, l: rows[0].l, e: 0}); return; }
      const lane = ranks[chosen.r].lanes[chosen.l];
      const next = {...chosen, e: Math.min(lane.start.length - 1, Math.max(0, chosen.e + by))};
      choose(next);
      showEntry(next);
    };
    const stepRow = (by) => {
      if (!chosen) { stepEntry(0); return; }
      const row = rows[(rowOf.get(`${chosen.r}/${chosen.l}`) || 0) + by];
      if (!row || !row.lane.start.length) return;
      const time = ranks[chosen.r].lanes[chosen.l].start[chosen.e];
      const next = {r: row.r, l: row.l, e: Math.min(row.lane.start.length - 1, lowerBound(row.lane.start, time))};
      choose(next);
      showEntry(next);
    };

    // Search
    let matchedCalls = new Set();
    const find = () => {
      const wanted = search.value.trim().toLowerCase();
      matches = [];
      matchAt = -1;
      matched = null;
      matchedCalls = new Set();
      if (wanted) {
        matched = data.names.map((name) => name.toLowerCase().includes(wanted));
        data.calls.forEach((call, i) => { if (`${call[2]} ${call[1]} ${call[0]}`.toLowerCase().includes(wanted)) matchedCalls.add(i); });
        rows.forEach(({r, l, lane}) => {
          for (let e = 0; e < lane.start.length && matches.length < 200000; ++e) {
            if (matched[lane.label[e]] || (lane.call[e] !== NEVER && matchedCalls.has(lane.call[e]))) matches.push({r, l, e, time: lane.start[e]});
          }
        });
        matches.sort((a, b) => a.time - b.time || a.r - b.r);
      }
      found.textContent = wanted ? `${rehearse.count(matches.length)} found` : '';
      draw();
    };
    const step = (by) => {
      if (!matches.length) return;
      matchAt = (matchAt + by + matches.length) % matches.length;
      found.textContent = `${rehearse.count(matchAt + 1)} of ${rehearse.count(matches.length)}`;
      choose(matches[matchAt]);
      showEntry(matches[matchAt]);
    };
    search.addEventListener('input', find);
    search.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); step(event.shiftKey ? -1 : 1); } });

    rowsBox.addEventListener('scroll', draw);
    new ResizeObserver(() => { if (!sheet && rowsBox.clientWidth !== width) layout(); }).observe(rowsBox);
    rehearse.onLook(draw);
    rehearse.onSheet((now) => {
      const [from, to] = scaleNow().domain();
      sheet = now;
      layout();
      show(from, to);
      drawNow();
    });
    layout();
    choose(null);

    // For tests and for other parts of the page.
    Object.assign(api, {
      rows: () => rows.length, chosen: () => chosen && facts(chosen), view: () => scaleNow().domain(), matches: () => matches.length,
      show: (from, to) => { show(from, to); drawNow(); return api.ms; }, end, ranks: ranks.length, drawNow,
    });
    return api;
  };

  // Texts of ticks: as many digits as tell them apart.
  rehearse.axisFormat = (span, ticks) => {
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : span;
    const top = ticks.length ? Math.max(...ticks.map(Math.abs)) : span;
    const [size, unit] = top >= 120e9 ? [60e9, 'min'] : top >= 1e9 ? [1e9, 's'] : top >= 1e6 ? [1e6, 'ms'] : top >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
    return (value) => `${(value / size).toFixed(digits)} ${unit}`;
  };
})();
