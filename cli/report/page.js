// SPDX-License-Identifier: Apache-2.0
// Unpacks the data and draws every picture that there is something for.
'use strict';

// Done before the page counts as loaded, so that it is whole for whoever prints it or takes its picture without waiting.
(() => {
  const begin = performance.now();
  const packed = Uint8Array.from(atob(document.getElementById('data').textContent.trim()), (c) => c.charCodeAt(0));
  const data = JSON.parse(pako.inflate(packed, {to: 'string'}));
  rehearse.pictures = {};

  // Several runs: one is shown at a time.
  const articles = [...document.querySelectorAll('article.run')];
  if (articles.length > 1) {
    const bar = rehearse.element(null, 'nav', {class: 'tabs', 'aria-label': 'Runs'});
    articles[0].before(bar);
    const tabs = data.runs.map((run, i) => {
      const tab = rehearse.element(bar, 'button', {type: 'button'}, run.name);
      tab.addEventListener('click', () => show(i));
      return tab;
    });
    let shown = 0;
    const show = (chosen) => {
      shown = chosen;
      articles.forEach((article, i) => {
        article.hidden = i !== chosen;
        tabs[i].setAttribute('aria-pressed', i === chosen ? 'true' : 'false');
      });
    };
    rehearse.showRun = show;
    const follow = () => {
      const wanted = /^#run-(\d+)$/.exec(location.hash);
      if (wanted && articles[+wanted[1]]) { show(+wanted[1]); articles[+wanted[1]].scrollIntoView(); }
    };
    addEventListener('hashchange', follow);
    const worst = data.runs.findIndex((run) => run.verdict !== 'completed' || run.culprits.length);
    show(Math.max(0, worst));
    follow();
    rehearse.onSheet((sheet) => {
      if (sheet) articles.forEach((article) => { article.hidden = false; }); else show(shown);
    });
  }
  const steps = (run) => run.variants.filter((v) => v.mean > 0 || v.stopped);
  const drawers = {
    steps: (run) => (steps(run).some((v) => v.mean > 0) ? (place) => rehearse.stepBars(place, steps(run)) : null),
    breakdown: (run) => (run.breakdown.length ? (place) => rehearse.breakdown(place, run.breakdown, run.culprits) : null),
    timeline: (run) => (run.timeline && run.timeline.ranks.length ? (place) => rehearse.timeline(place, run.timeline, run) : null),
    cluster: (run) => (run.cluster && run.cluster.nodes.length ? (place) => rehearse.cluster(place, run.cluster, {culprits: run.culprits}) : null),
    waiting: (run) => (run.waits.length ? (place) => rehearse.waiting(place, run.waits, run.culprits) : null),
    memory: (run) => (run.memory.length ? (place) => rehearse.memory(place, run.memory, run.progress > 0 ? run.progress : run.end) : null),
  };
  for (const section of document.querySelectorAll('[data-picture]')) {
    const name = section.dataset.picture, run = data.runs[+section.dataset.run];
    const place = section.querySelector('.canvas');
    if (name === 'compare') {
      section.hidden = false;
      rehearse.stepBars(place, data.runs.map((one) => ({...one.variants.find((v) => v.name === one.name), name: one.name})));
      continue;
    }
    const draw = run && drawers[name](run);
    if (!draw) continue;
    section.hidden = false;
    rehearse.pictures[section.id] = draw(place);
  }
  for (const section of document.querySelectorAll('[data-study-picture]')) {
    const draw = rehearse.study(data.studies[+section.dataset.study])[section.dataset.studyPicture];
    if (!draw) continue;
    section.hidden = false;
    draw(section.querySelector('.canvas'));
  }
  addEventListener('beforeprint', () => { for (const node of document.querySelectorAll('details')) node.open = true; });
  rehearse.ready = performance.now() - begin;
  document.documentElement.dataset.ready = 'yes';
})();
