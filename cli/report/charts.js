// SPDX-License-Identifier: Apache-2.0
// Bars of step times, where each rank's time goes, memory over time.
'use strict';

(() => {
  const parts = [['compute', 'compute'], ['communication', 'communication'], ['wait', 'waiting for others'],
    ['host', 'host'], ['idle', 'idle']];
  const barColour = {baseline: 'soft', healthy: 'good', broken: 'bad', fix: 'good', partial: 'warn'};

  // variants: [{name, kind, mean, each, low, high, stopped}]
  rehearse.stepBars = (place, variants) => {
    const rowHeight = 44;
    const valueOf = (v) => (v.stopped ? `${v.stopped}${v.mean > 0 ? `, ${rehearse.duration(v.mean)} before` : ''}` : rehearse.duration(v.mean));
    const right = 20 + 6.8 * (d3.max(variants, (v) => valueOf(v).length) || 0); // room for the longest of them
    const {svg} = rehearse.svg(place, variants.length * rowHeight + 34, (svg, width, height) => {
      const left = 16;
      const most = d3.max(variants, (v) => Math.max(v.mean, v.high || 0, d3.max(v.each || []) || 0)) || 1;
      const x = d3.scaleLinear().domain([0, most]).range([left, width - right]).nice(5);
      svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - 24})`)
        .call(d3.axisBottom(x).ticks(Math.max(3, Math.floor(width / 140))).tickFormat(rehearse.duration).tickSizeOuter(0));
      const row = svg.selectAll('g.row').data(variants).enter().append('g').attr('class', 'row')
        .attr('transform', (v, i) => `translate(0,${i * rowHeight})`);
      row.append('text').attr('x', left).attr('y', 13)
        .text((v) => rehearse.clip(v.name, Math.floor((width - 20) / 6.6)));
      row.append('rect').attr('x', left).attr('y', 19).attr('height', 15).attr('rx', 2)
        .attr('width', (v) => Math.max(v.mean > 0 ? 1 : 0, x(v.mean) - left))
        .attr('fill', (v) => `var(--${barColour[v.kind] || 'accent'})`).attr('fill-opacity', 0.75);
      row.append('text').attr('y', 31).attr('x', (v) => x(Math.max(v.mean, v.high || 0, d3.max(v.each || []) || 0)) + 8)
        .text(valueOf);
      row.each(function (v) {
        const one = d3.select(this);
        one.selectAll('circle').data((v.each || []).slice(0, 400)).enter().append('circle').attr('r', 2)
          .attr('cx', (t) => x(t)).attr('cy', 26.5).attr('fill', 'var(--ink)').attr('fill-opacity', 0.55);
        if (!(v.high > v.low)) return;
        const whisker = one.append('g').attr('stroke', 'var(--ink)').attr('stroke-width', 1.5);
        whisker.append('line').attr('x1', x(v.low)).attr('x2', x(v.high)).attr('y1', 38).attr('y2', 38);
        for (const at of [v.low, v.high]) whisker.append('line').attr('x1', x(at)).attr('x2', x(at)).attr('y1', 35).attr('y2', 41);
      });
    });
    svg.attr('aria-label', variants.map((v) => `${v.name}: ${rehearse.duration(v.mean)}`).join('; '));
  };

  const read = (row) => ({rank: row[0], compute: row[1], communication: row[2], wait: row[3], host: row[4], idle: row[5], overlapped: row[6]});

  const tipOf = (r) => [`rank ${r.rank}`, ...parts.map(([key, name]) => `${name}: ${rehearse.duration(r[key])}`),
    `hidden communication: ${rehearse.duration(r.overlapped)}`];

  // rows: [[rank, compute, communication, wait, host, idle, overlapped]]; culprits as in the outcome
  rehearse.breakdown = (place, rows, culprits = []) => {
    const ranks = rows.map(read);
    const sorted = ranks.slice().sort((a, b) => a.wait - b.wait || a.rank - b.rank);
    rehearse.legend(place, parts);
    if (ranks.length > 96) { many(place, ranks, sorted, new Set(culprits.map((c) => c.rank))); return; }
    const bar = ranks.length > 32 ? 11 : 17;
    rehearse.svg(place, ranks.length * bar + 30, (svg, width, height) => {
      const left = 62;
      const x = d3.scaleLinear().domain([0, d3.max(ranks, (r) => d3.sum(parts, ([key]) => r[key])) || 1]).range([left, width - 30]);
      svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - 24})`)
        .call(d3.axisBottom(x).ticks(Math.max(3, Math.floor(width / 140))).tickFormat(rehearse.duration).tickSizeOuter(0));
      const row = svg.selectAll('g.row').data(sorted).enter().append('g').attr('class', 'row')
        .attr('transform', (r, i) => `translate(0,${i * bar})`)
        .on('mousemove', (r) => rehearse.tip(d3.event, tipOf(r))).on('mouseleave', () => rehearse.tip());
      row.append('rect').attr('x', 0).attr('width', width).attr('height', bar).attr('fill', 'transparent');
      row.append('text').attr('x', left - 8).attr('y', bar - 4).attr('text-anchor', 'end').attr('class', 'soft small').text((r) => `rank ${r.rank}`);
      row.each(function (r) {
        let at = 0;
        for (const [key] of parts) {
          const width = x(at + r[key]) - x(at);
          if (width > 0.05) {
            d3.select(this).append('rect').attr('x', x(at)).attr('y', 1).attr('width', width).attr('height', bar - 2).attr('fill', `var(--${key})`);
          }
          at += r[key];
        }
      });
    });
  };

  // Many ranks: an area over the sorted ranks, and a field of cells in rank order.
  const many = (place, ranks, sorted, blamed) => {
    rehearse.svg(place, 190, (svg, width, height) => {
      const left = 62, bottom = height - 26;
      const x = d3.scaleLinear().domain([0, sorted.length]).range([left, width - 12]);
      const y = d3.scaleLinear().domain([0, d3.max(sorted, (r) => d3.sum(parts, ([key]) => r[key])) || 1]).range([bottom, 6]);
      const stack = d3.stack().keys(parts.map(([key]) => key))(sorted);
      const area = d3.area().curve(d3.curveStepAfter).x((d, i) => x(i)).y0((d) => y(d[0])).y1((d) => y(d[1]));
      for (const layer of stack) {
        svg.append('path').attr('d', area([...layer, layer[layer.length - 1]])).attr('fill', `var(--${layer.key})`);
      }
      svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(4).tickFormat(rehearse.duration).tickSizeOuter(0));
      svg.append('text').attr('class', 'soft small').attr('x', left).attr('y', height - 6).text('waits least');
      svg.append('text').attr('class', 'soft small').attr('x', width - 12).attr('y', height - 6).attr('text-anchor', 'end').text('waits most');
      svg.append('rect').attr('x', left).attr('y', 0).attr('width', width - left - 12).attr('height', bottom).attr('fill', 'transparent')
        .on('mousemove', function () {
          const i = Math.floor(x.invert(d3.mouse(this)[0]));
          if (sorted[i]) rehearse.tip(d3.event, tipOf(sorted[i]));
        }).on('mouseleave', () => rehearse.tip());
    });
    const tools = rehearse.element(place, 'div', {class: 'bar-tools'});
    const label = rehearse.element(tools, 'label', {}, 'Every rank in order, by ');
    const select = rehearse.element(label, 'select', {'aria-label': 'what the cells show'});
    for (const [key, name] of [...parts, ['overlapped', 'hidden communication']]) rehearse.element(select, 'option', {value: key}, name);
    select.value = 'wait';
    const scale = rehearse.element(tools, 'span', {class: 'note'});
    const field = rehearse.element(place, 'div');
    const columns = Math.max(16, Math.ceil(Math.sqrt(ranks.length * 2.6) / 8) * 8);
    const left = 34, sizeOf = (width) => Math.max(5, Math.floor((width - left) / columns)); // each line begins with its first rank
    const drawn = rehearse.svg(field, (width) => Math.ceil(ranks.length / columns) * sizeOf(width) + 2, (svg, width) => {
      const key = select.value, cell = sizeOf(width);
      const [least, most] = d3.extent(ranks, (r) => r[key]);
      const colour = d3.scaleLinear().domain([least, most > least ? most : least + 1]).range([rehearse.colour('grid'), rehearse.colour(key === 'overlapped' ? 'communication' : key)])
        .interpolate(d3.interpolateLab);
      scale.textContent = `${rehearse.duration(least)} (pale) to ${rehearse.duration(most)} (full)`;
      svg.append('g').attr('class', 'heat').selectAll('rect').data(ranks).enter().append('rect')
        .attr('x', (r, i) => left + (i % columns) * cell).attr('y', (r, i) => Math.floor(i / columns) * cell)
        .attr('width', cell).attr('height', cell).attr('fill', (r) => colour(r[key]))
        .on('mousemove', (r) => rehearse.tip(d3.event, tipOf(r))).on('mouseleave', () => rehearse.tip());
      const every = Math.max(1, Math.ceil(12 / cell));
      svg.append('g').selectAll('text').data(ranks.filter((r, i) => i % (columns * every) === 0)).enter().append('text').attr('class', 'soft small')
        .attr('x', left - 6).attr('y', (r, i) => i * every * cell + Math.min(cell, 16) / 2 + 4).attr('text-anchor', 'end').text((r) => r.rank);
      svg.append('g').selectAll('rect').data(ranks.map((r, i) => [r, i]).filter(([r]) => blamed.has(r.rank))).enter().append('rect').attr('class', 'shape culprit').attr('fill', 'none')
        .attr('x', ([, i]) => left + (i % columns) * cell).attr('y', ([, i]) => Math.floor(i / columns) * cell + 1).attr('width', cell).attr('height', cell);
    });
    select.addEventListener('change', drawn.redraw);
  };

  // curves: [{rank, capacity, time (differences), bytes}]; until: the end of the run
  rehearse.memory = (place, curves, until) => {
    for (const curve of curves) {
      let at = 0;
      curve.points = curve.time.map((step, i) => [at += step, curve.bytes[i]]);
      if (until > at && curve.bytes.length) curve.points.push([until, curve.bytes[curve.bytes.length - 1]]);
    }
    const capacity = d3.max(curves, (c) => c.capacity);
    rehearse.svg(place, 220, (svg, width, height) => {
      const left = 70, bottom = height - 26;
      const x = d3.scaleLinear().domain([0, d3.max(curves, (c) => d3.max(c.points, (p) => p[0])) || 1]).range([left, width - 26]);
      const peak = d3.max(curves, (c) => d3.max(c.points, (p) => p[1]));
      // A curve at the foot of an empty picture shows nothing: a capacity far above is told, not drawn.
      const near = capacity <= 3 * peak;
      const y = d3.scaleLinear().domain([0, near ? Math.max(peak, capacity) : 1.2 * peak]).range([bottom, 10]);
      const unit = 2 ** (10 * Math.max(0, Math.floor(Math.log2(y.domain()[1]) / 10)));
      const levels = d3.ticks(0, y.domain()[1] / unit, 4).map((level) => level * unit);
      svg.append('g').attr('class', 'grid').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).tickValues(levels).tickSize(-(width - left - 26)).tickFormat(''));
      svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${bottom})`).call(d3.axisBottom(x).ticks(Math.max(3, Math.floor(width / 150))).tickFormat(rehearse.duration).tickSizeOuter(0));
      svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).tickValues(levels).tickFormat(rehearse.bytes).tickSizeOuter(0));
      if (capacity > 0 && !near) {
        svg.append('text').attr('class', 'soft small').attr('x', width - 28).attr('y', 20).attr('text-anchor', 'end').text(`capacity ${rehearse.bytes(capacity)}, far above`);
      } else if (capacity > 0) {
        svg.append('line').attr('x1', left).attr('x2', width - 26).attr('y1', y(capacity)).attr('y2', y(capacity)).attr('stroke', 'var(--bad)').attr('stroke-dasharray', '5 4');
        svg.append('text').attr('class', 'small').attr('x', width - 28).attr('y', y(capacity) + 14).attr('text-anchor', 'end').attr('fill', 'var(--bad)').text(`capacity ${rehearse.bytes(capacity)}`);
      }
      const line = d3.line().curve(d3.curveStepAfter).x((p) => x(p[0])).y((p) => y(p[1]));
      svg.append('g').attr('fill', 'none').selectAll('path').data(curves).enter().append('path').attr('d', (c) => line(c.points))
        .attr('stroke', (c, i) => (i === 0 ? 'var(--compute)' : 'var(--soft)')).attr('stroke-width', (c, i) => (i === 0 ? 1.6 : 1)).attr('stroke-opacity', (c, i) => (i === 0 ? 1 : 0.4))
        .on('mousemove', (c) => rehearse.tip(d3.event, [`rank ${c.rank}`, `at most ${rehearse.bytes(d3.max(c.bytes))}`])).on('mouseleave', () => rehearse.tip());
      svg.append('text').attr('class', 'small').attr('x', left + 6).attr('y', y(peak) - 5).text(`rank ${curves[0].rank}: at most ${rehearse.bytes(d3.max(curves[0].bytes))}`);
    });
  };
})();
