// SPDX-License-Identifier: Apache-2.0
// Pictures of a study: best points, shares of axes, means by value, step time against GPUs.
'use strict';

(() => {
  const shown = (objective) => {
    if (objective.endsWith('_ns')) return rehearse.duration;
    if (objective.endsWith('_bytes')) return rehearse.bytes;
    return (value) => `${+ value.toPrecision(6)}`;
  };

  // rows: [{name, value}] as bars from zero, each with its figure.
  const bars = (place, rows, format, colour = 'accent') => {
    const rowHeight = 36;
    const {svg} = rehearse.svg(place, rows.length * rowHeight + 6, (svg, width) => {
      const left = 16, right = 96;
      const [least, most] =
          [Math.min(0, d3.min(rows, (r) => r.value)), Math.max(0, d3.max(rows, (r) => r.value))];
      const x = d3.scaleLinear().domain([least, most > least ? most : least + 1]).range([
        left, width - right
      ]);
      const row = svg.selectAll('g.row')
                      .data(rows)
                      .enter()
                      .append('g')
                      .attr('class', 'row')
                      .attr('transform', (r, i) => `translate(0,${i * rowHeight})`)
                      .on('mousemove', (r) => rehearse.tip(d3.event, [r.name, format(r.value)]))
                      .on('mouseleave', () => rehearse.tip());
      row.append('text').attr('x', left).attr('y', 13).text(
          (r) => rehearse.clip(r.name, Math.floor((width - 20) / 6.6)));
      row.append('rect')
          .attr('y', 18)
          .attr('height', 12)
          .attr('rx', 2)
          .attr('x', (r) => x(Math.min(0, r.value)))
          .attr('width', (r) => Math.max(1, x(Math.max(0, r.value)) - x(Math.min(0, r.value))))
          .attr('fill', `var(--${colour})`)
          .attr('fill-opacity', 0.75);
      row.append('text')
          .attr('y', 28)
          .attr('x', (r) => x(Math.max(0, r.value)) + 8)
          .text((r) => format(r.value));
    });
    svg.attr('aria-label', rows.map((r) => `${r.name}: ${format(r.value)}`).join('; '));
  };

  const means = (place, study) => {
    for (const effect of study.effects.filter((e) => e.means.length > 1)) {
      rehearse.element(place, 'h4', {}, effect.axes);
      bars(
          rehearse.element(place, 'div'), effect.means.map(([name, value]) => ({name, value})),
          shown(study.objective), 'compute');
    }
  };

  const front = (place, study) => {
    const others = study.best.filter((p) => p.gpus > 0 && p.step > 0);
    const all = [...study.front, ...others];
    const {svg} = rehearse.svg(place, 260, (svg, width, height) => {
      const left = 76, bottom = height - 40;
      const x =
          d3.scaleLinear().domain([0, d3.max(all, (p) => p.gpus)]).range([left, width - 26]).nice();
      const y = d3.scaleLinear().domain([0, d3.max(all, (p) => p.step)]).range([bottom, 12]).nice();
      svg.append('g')
          .attr('class', 'axis')
          .attr('transform', `translate(0,${bottom})`)
          .call(d3.axisBottom(x).ticks(6).tickSizeOuter(0));
      svg.append('g')
          .attr('class', 'axis')
          .attr('transform', `translate(${left},0)`)
          .call(d3.axisLeft(y).ticks(5).tickFormat(rehearse.duration).tickSizeOuter(0));
      svg.append('text')
          .attr('class', 'soft small')
          .attr('x', width - 26)
          .attr('y', height - 6)
          .attr('text-anchor', 'end')
          .text('GPUs');
      svg.append('path')
          .attr('fill', 'none')
          .attr('stroke', 'var(--accent)')
          .attr('stroke-width', 1.5)
          .attr(
              'd',
              d3.line()
                  .curve(d3.curveStepAfter)
                  .x((p) => x(p.gpus))
                  .y((p) => y(p.step))(study.front));
      const dots = (points, colour, size) =>
          svg.append('g')
              .selectAll('circle')
              .data(points)
              .enter()
              .append('circle')
              .attr('r', size)
              .attr('cx', (p) => x(p.gpus))
              .attr('cy', (p) => y(p.step))
              .attr('fill', `var(--${colour})`)
              .on('mousemove',
                  (p) => rehearse.tip(
                      d3.event, [p.label, `${p.gpus} GPUs`, rehearse.duration(p.step)]))
              .on('mouseleave', () => rehearse.tip());
      dots(others, 'soft', 3);
      dots(study.front, 'accent', 4.5);
    });
    svg.attr(
        'aria-label',
        study.front.map((p) => `${p.gpus} GPUs: ${rehearse.duration(p.step)}`).join('; '));
  };

  // What there is to draw of a study, by the name of its place; null: nothing.
  rehearse.study = (study) => ({
    best: study.best.length ? (place) => bars(
                                  place, study.best.map((p) => ({name: p.label, value: p.value})),
                                  shown(study.objective)) :
                              null,
    shares: study.effects.length ?
        (place) => bars(
            place, study.effects.map((e) => ({name: e.axes, value: e.share})), rehearse.percent,
            'communication') :
        null,
    means: study.effects.some((e) => e.means.length > 1) ? (place) => means(place, study) : null,
    front: study.front.length > 1 ? (place) => front(place, study) : null,
  });
})();
