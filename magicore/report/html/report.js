"use strict";
/* Draws the panels and the case view from the embedded JSON. Whatever a model wrote becomes a text node, never markup. */
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const many = data.runs.length > 1;

  // ---- elements, numbers -------------------------------------------------------------------------------------------
  const SVG = "http://www.w3.org/2000/svg";
  const shown = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    for (const child of children.flat(9)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(shown(child)));
    }
    return node;
  }
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const integer = new Intl.NumberFormat("en");
  const count = (value) => (value === null || value === undefined ? "–" : integer.format(value));
  const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
  const fixed = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "\u2212"));
  const whole = (value) => (value === null ? "–" : count(Math.round(value)));
  const missing = (panel) => (panel && panel.missing ? h("p", { class: "missing" }, panel.missing) : null);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  /** A chart that is drawn for the width it has, and again when that changes. */
  function chart(label, draw) {
    const box = h("div", {});
    let width = 0;
    const observer = new ResizeObserver((entries) => {
      const now = Math.floor(entries[0].contentRect.width);
      if (!now || now === width) return;
      width = now;
      const { height, parts } = draw(width);
      box.replaceChildren(
        s("svg", { class: "chart", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, height }, parts),
      );
    });
    observer.observe(box);
    return box;
  }
  const label = (x, y, text, more) => s("text", { x, y, ...more }, text);
  function table(head, rows, caption) {
    return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h("table", { class: "numbers plain" },
        h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h(at ? "td" : "th", at ? {} : { scope: "row" }, cell)))))));
  }
  const numbers = (head, rows, caption, more) => h("details", {}, h("summary", {}, "Numbers"), table(head, rows, caption), more);
  function figures(panel, make, className) {
    const box = h("div", { class: `figures ${className || ""}` });
    data.runs.forEach((run, at) => {
      box.append(h("div", { class: "figure" },
        many && h("h3", {}, h("span", { class: `swatch run-${at % 6}`, "aria-hidden": "true" }), h("bdi", {}, run.label)), make(run, at)));
    });
    document.querySelector(`[data-panel="${panel}"]`).append(box);
  }
  function ticks(low, high, wanted) {
    const raw = (high - low) / wanted || 1;
    const base = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * base).find((value) => value >= raw);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(12)));
    return found;
  }

  // ---- accuracy and tokens -----------------------------------------------------------------------------------------
  const STYLES = {
    "self-consistency": ["var(--run-5)", "", "circle"], "weighted self-consistency": ["var(--run-0)", "", "square"],
    "best-of-k by o": ["var(--run-2)", "6 3", "triangle"], "sc+prm": ["var(--run-3)", "2 3", "diamond"], coverage: ["var(--run-4)", "8 3 2 3", "cross"],
  };
  function marker(kind, x, y, colour, size = 4) {
    const r = size;
    if (kind === "circle") return s("circle", { cx: x, cy: y, r, fill: colour });
    if (kind === "square") return s("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, fill: colour });
    if (kind === "triangle") return s("path", { d: `M${x} ${y - r}L${x + r} ${y + r}H${x - r}Z`, fill: colour });
    if (kind === "diamond") return s("path", { d: `M${x} ${y - r - 1}L${x + r + 1} ${y}L${x} ${y + r + 1}L${x - r - 1} ${y}Z`, fill: colour });
    return s("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`, stroke: colour, "stroke-width": 2, fill: "none" });
  }
  const star = (x, y, colour) => {
    const points = [...Array(10).keys()].map((i) => {
      const r = i % 2 ? 3.6 : 8.5, a = (Math.PI * i) / 5 - Math.PI / 2;
      return `${(x + r * Math.cos(a)).toFixed(1)},${(y + r * Math.sin(a)).toFixed(1)}`;
    });
    return s("polygon", { points: points.join(" "), fill: colour, stroke: "var(--card)", "stroke-width": 1 });
  };
  function frontierPanel() {
    const place = document.querySelector('[data-panel="frontier"]');
    const able = data.runs.map((run, at) => ({ run, at })).filter(({ run }) => !run.frontier.missing);
    data.runs.forEach((run) => run.frontier.missing && place.append(h("p", { class: "missing" }, many ? [h("bdi", {}, run.label), ": "] : "", run.frontier.missing)));
    if (!able.length) return;
    const box = h("div", { class: "figure" });
    const drawn = h("div", {});
    let chosen = able[0].at, axis = "generated";
    const spends = (name) => able.some(({ run }) => run.frontier.spent[name]);
    /** The runs alone on another axis of cost; nothing is known of the votes there. */
    function best(own) {
      const found = [];
      for (const one of [...own].sort((a, b) => a.point.tokens - b.point.tokens || b.point.accuracy - a.point.accuracy)) {
        if (!found.length || one.point.accuracy > found[found.length - 1].accuracy) found.push({ ...one.point, name: one.run.label });
      }
      return found;
    }
    function draw() {
      const found = data.runs[chosen].frontier, generated = axis === "generated";
      const what = generated ? "completion tokens" : data.axes[axis];
      const amount = (value) => (value === null ? "–" : value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(3))));
      const series = !generated ? [] : Object.entries(found.series).map(([name, points]) => [name, points.filter((p) => p.tokens !== null)]).filter(([, points]) => points.length);
      const own = able.map(({ run, at }) => ({ run, at, point: generated ? run.frontier.run : { ...run.frontier.run, tokens: run.frontier.spent[axis] } })).filter(({ point }) => point.tokens !== null);
      const all = [...series.flatMap(([, points]) => points), ...own.map(({ point }) => point)];
      if (!all.length) { drawn.replaceChildren(h("p", { class: "missing" }, `The ${what} are not known, so nothing can be placed.`)); return; }
      const positive = all.map((p) => p.tokens).filter((v) => v > 0), least = positive.length ? Math.min(...positive) : 1;
      const xs = all.map((p) => Math.max(p.tokens, least)), ys = all.map((p) => p.accuracy);
      const low = Math.log10(Math.min(...xs)) - 0.06, high = Math.log10(Math.max(...xs)) + 0.1;
      const span = Math.max(...ys) - Math.min(...ys);
      const bottom = Math.max(0, Math.min(...ys) - Math.max(0.03, span * 0.08)), top = Math.min(1, Math.max(...ys) + Math.max(0.03, span * 0.08));
      drawn.replaceChildren(h("div", {}, chart(`Accuracy against ${what} a problem; the numbers are in the table below`, (width) => {
        const left = 46, right = 14, height = clamp(width * 0.46, 250, 420), base = height - 42;
        const x = (v) => left + ((Math.log10(Math.max(v, least)) - low) / (high - low)) * (width - left - right);
        const y = (v) => base - ((v - bottom) / (top - bottom || 1)) * (base - 12);
        const parts = ticks(bottom, top, 5).map((v) => [s("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }), label(left - 8, y(v) + 4, `${Math.round(1000 * v) / 10} %`, { "text-anchor": "end" })]);
        const decades = [];
        for (let p = Math.floor(low); p <= high; p++) for (const m of [1, 2, 5]) { const v = Number((m * 10 ** p).toPrecision(3)); if (Math.log10(v) >= low && Math.log10(v) <= high) decades.push(v); }
        const sparse = decades.length > width / 62 ? decades.filter((v) => /^1/.test(String(v))) : decades;
        parts.push(s("line", { class: "axis", x1: left, x2: width - right, y1: base, y2: base }));
        parts.push(sparse.map((v) => label(x(v), base + 17, v >= 1e6 ? `${v / 1e6}M` : v >= 1e3 ? `${v / 1e3}k` : String(v), { "text-anchor": "middle" })));
        parts.push(label(width - right, base + 35, `${what} a problem (log scale)`, { "text-anchor": "end" }));
        const edge = (generated ? data.pareto : best(own)).filter((p) => p.tokens >= 10 ** low);
        if (edge.length > 1) parts.push(s("path", { class: "pareto", d: edge.map((p, i) => (i ? `H${x(p.tokens)}V${y(p.accuracy)}` : `M${x(p.tokens)} ${y(p.accuracy)}`)).join("") }));
        parts.push(edge.map((p) => s("circle", { class: "pareto-point", cx: x(p.tokens), cy: y(p.accuracy), r: 6.5 }, s("title", {}, `${p.name}: ${percent(p.accuracy)} at ${amount(p.tokens)} ${what}`))));
        for (const [name, points] of series) {
          const [colour, dash, kind] = STYLES[name];
          parts.push(s("path", { class: "line", stroke: colour, "stroke-dasharray": dash || null, d: points.map((p, i) => `${i ? "L" : "M"}${x(p.tokens)} ${y(p.accuracy)}`).join("") }));
          parts.push(points.map((p) => s("g", {}, s("title", {}, `${name}, first ${p.k} chains: ${percent(p.accuracy)} at ${count(Math.round(p.tokens))} tokens`), marker(kind, x(p.tokens), y(p.accuracy), colour))));
        }
        let above = -99;
        for (const { run, at, point } of [...own].sort((a, b) => b.point.accuracy - a.point.accuracy)) {
          const px = x(point.tokens), py = y(point.accuracy), flip = px > width * 0.7;
          const ty = Math.max(py + 4, above + 14);
          above = ty;
          parts.push(s("g", {}, s("title", {}, `${run.label}: ${percent(point.accuracy)} at ${amount(point.tokens)} ${what}`), star(px, py, `var(--run-${at % 6})`),
            label(px + (flip ? -12 : 12), ty, run.label.slice(0, 28), { class: "strong", "text-anchor": flip ? "end" : "start" })));
        }
        return { height, parts };
      }),
      h("ul", { class: "legend" },
        series.map(([name]) => h("li", {}, s("svg", { "aria-hidden": "true" }, s("line", { x1: 0, x2: 22, y1: 6, y2: 6, stroke: STYLES[name][0], "stroke-width": 2, "stroke-dasharray": STYLES[name][1] || null }), marker(STYLES[name][2], 11, 6, STYLES[name][0], 3.5)), name)),
        h("li", {}, s("svg", { "aria-hidden": "true" }, star(11, 6, `var(--run-${chosen % 6})`)), many ? "a run" : "this run"),
        (generated ? data.pareto : best(own)).length > 1 && h("li", {}, s("svg", { "aria-hidden": "true" }, s("line", { class: "pareto", x1: 0, x2: 22, y1: 6, y2: 6 })), "frontier: nothing is both cheaper and better")),
      found.note && h("p", { class: "missing" }, found.note),
      numbers(["Run", "Chains", "Tokens a problem", "Accuracy"], able.map(({ run }) => [run.label, count(run.frontier.run.k), whole(run.frontier.run.tokens), percent(run.frontier.run.accuracy)]), "Runs",
        Object.keys(found.series).length ? table(["First chains", "Tokens a problem", ...Object.keys(found.series)], found.series.coverage.map((p, i) => [
          count(p.k), whole(p.tokens), ...Object.values(found.series).map((points) => percent(points[i].accuracy))]), "Votes by the number of chains") : null),));
    }
    const costs = Object.entries(data.axes).filter(([name]) => spends(name));
    const choices = h("p", { class: "choices small muted" },
      many && h("label", {}, "Votes over the chains of ", h("select", { id: "frontier-run", onchange: (event) => { chosen = Number(event.target.value); draw(); } }, able.map(({ run, at }) => h("option", { value: at }, run.label)))),
      costs.length ? h("label", {}, "Cost ", h("select", { id: "frontier-axis", onchange: (event) => { axis = event.target.value; draw(); } }, h("option", { value: "generated" }, "completion tokens, prompts not counted: votes and runs"), costs.map(([name, title]) => h("option", { value: name }, `${title}: runs`)))) : null);
    box.append(choices);
    const short = (value) => (value === null ? "–" : value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(3))));
    const spending = costs.length ? [h("h4", { class: "where" }, "What a problem costs"), table(["Run", ...costs.map(([, title]) => title)], able.map(({ run }) => [run.label, ...costs.map(([name]) => short(run.frontier.spent[name]))]), "What a problem costs")] : [];
    box.append(drawn, ...spending);
    place.append(box);
    draw();
  }

  // ---- easy and hard -----------------------------------------------------------------------------------------------
  function routingFigure(run, at) {
    const panel = run.routing;
    if (panel.missing) return missing(panel);
    const parts = [], beside = [];
    if (panel.points.length) {
      const zs = panel.points.map((p) => p.z), cs = panel.points.map((p) => p.confidence);
      const lowZ = Math.min(-0.5, ...zs), highZ = Math.max(0.5, ...zs), lowC = Math.min(0.4, ...cs), pad = (highZ - lowZ) * 0.04;
      parts.push(chart("Mean z of the majority against the smaller confidence, right and wrong; the list of cases has every problem", (width) => {
        const left = 40, height = clamp(width * 0.72, 240, 420), base = height - 40, right = 10;
        const x = (v) => left + ((v - lowZ + pad) / (highZ - lowZ + 2 * pad)) * (width - left - right);
        const y = (v) => base - ((v - lowC + 0.02) / (1.02 - lowC + 0.02)) * (base - 10);
        const marks = (keep, className, path) => {
          const d = panel.points.filter(keep).map((p) => path(x(p.z), y(p.confidence))).join("");
          return d ? s("path", { class: className, d }) : null;
        };
        const disc = (px, py) => `M${(px - 3.4).toFixed(1)} ${py.toFixed(1)}a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0`;
        const cross = (px, py) => `M${(px - 3.4).toFixed(1)} ${(py - 3.4).toFixed(1)}l6.8 6.8m0 -6.8l-6.8 6.8`;
        const plane = s("rect", { x: left, y: 0, width: width - left - right, height: base, fill: "transparent" });
        const svgParts = [
          s("rect", { class: "hard-area", x: left, y: y(0.5), width: x(0) - left, height: base - y(0.5) }),
          label(left + 6, base - 7, "hard: both fail"),
          ticks(lowZ, highZ, Math.max(3, width / 90)).map((v) => label(x(v), base + 16, fixed(v, Number.isInteger(v) ? 0 : 1), { "text-anchor": "middle" })),
          ticks(lowC, 1, 4).map((v) => label(left - 6, y(v) + 4, v.toFixed(1), { "text-anchor": "end" })),
          s("line", { class: "axis", x1: left, x2: width - right, y1: base, y2: base }), s("line", { class: "axis", x1: left, x2: left, y1: 4, y2: base }),
          s("line", { class: "rule", x1: x(0), x2: x(0), y1: 4, y2: base }), s("line", { class: "rule", x1: left, x2: width - right, y1: y(0.5), y2: y(0.5) }),
          label(width - right, base + 33, "mean z of the majority", { "text-anchor": "end" }), label(left + 6, 14, "smaller confidence"),
          plane,
          s("g", { opacity: panel.points.length > 400 ? 0.55 : 0.85, "pointer-events": "none" },
            marks((p) => p.correct === true, "right", disc), marks((p) => p.correct === null, "plain", disc)),
          s("g", { "stroke-width": 1.7, opacity: panel.points.length > 400 ? 0.7 : 1, "pointer-events": "none" }, marks((p) => p.correct === false, "wrong", cross)),
        ];
        plane.addEventListener("click", (event) => {
          const box = plane.getBoundingClientRect();
          const px = event.clientX - box.left + left, py = event.clientY - box.top;
          let best = null, near = 14 ** 2;
          for (const p of panel.points) { const d = (x(p.z) - px) ** 2 + (y(p.confidence) - py) ** 2; if (d < near) { near = d; best = p; } }
          if (best) openCase(at, best.at, true);
        });
        return { height, parts: svgParts };
      }));
      parts.push(h("ul", { class: "legend" },
        h("li", {}, s("svg", { "aria-hidden": "true" }, s("circle", { class: "right", cx: 11, cy: 6, r: 4 })), "right"),
        h("li", {}, s("svg", { "aria-hidden": "true" }, s("path", { class: "wrong", "stroke-width": 1.8, d: "M7 2l8 8m0 -8l-8 8" })), "wrong"),
        panel.points.some((p) => p.correct === null) && h("li", {}, s("svg", { "aria-hidden": "true" }, s("circle", { class: "plain", cx: 11, cy: 6, r: 4 })), "not graded"),
        h("li", {}, "A click on a mark opens the case.")));
    } else parts.push(h("p", { class: "missing" }, "No problem has a mean z and both confidences, so none can be placed."));
    if (panel.unplaced && panel.points.length) parts.push(h("p", { class: "missing" }, panel.unplaced === 1 ? "One problem lacks a z or a confidence and is not drawn." : `${count(panel.unplaced)} problems lack a z or a confidence and are not drawn.`));
    beside.push(h("p", { class: "muted small" }, "Router: ", h("bdi", {}, panel.router), "."));
    beside.push(table(["Problems", "Count", "Right", "Accuracy", "95 % interval"], Object.entries(panel.groups).map(([name, a]) => [
      name, count(a.n), a.graded ? count(a.correct) : "–", percent(a.value), a.interval ? `${(100 * a.interval[0]).toFixed(1)} to ${(100 * a.interval[1]).toFixed(1)}` : "–"]), "Accuracy by routing"));
    if (panel.refined_without_need !== null) beside.push(h("dl", { class: "facts" },
      h("dt", {}, "Precision, recall"), h("dd", {}, `${percent(panel.precision)}, ${percent(panel.recall)}`),
      h("dt", {}, "Refined without need"), h("dd", {}, count(panel.refined_without_need)),
      h("dt", {}, "Wrong and left so"), h("dd", {}, count(panel.left_wrong))),
    h("p", { class: "muted small" }, "Hard is positive; truly hard is a problem that the vote of its first chains gets wrong."));
    return h("div", { class: "split" }, h("div", {}, parts), h("div", {}, beside));
  }

  // ---- rounds ------------------------------------------------------------------------------------------------------
  function flowFigure(run) {
    const panel = run.flow;
    if (panel.missing) return missing(panel);
    const n = panel.graded, rounds = panel.rounds;
    const rights = [panel.first_right, ...rounds.map((r) => r.right)];
    const draw = (width) => {
      const height = 250, top = 26, tall = height - top - 26, bar = 16, left = 4, right = 4;
      const step = (width - left - right - bar) / rounds.length;
      const unit = tall / (n || 1), at = (i) => left + i * step;
      const ribbon = (x0, y0, x1, y1, size, className, title) => {
        if (!size) return null;
        const t = size * unit, m = (x0 + x1) / 2;
        return s("path", { class: `ribbon ${className}`, d: `M${x0} ${y0}C${m} ${y0} ${m} ${y1} ${x1} ${y1}V${y1 + t}C${m} ${y1 + t} ${m} ${y0 + t} ${x0} ${y0 + t}Z` }, s("title", {}, title));
      };
      const parts = [];
      rounds.forEach((r, i) => {
        const before = rights[i], now = rights[i + 1], x0 = at(i) + bar, x1 = at(i + 1);
        const keptRight = before - r.broken, keptWrong = n - before - r.fixed;
        const y0 = top + before * unit, y1 = top + now * unit;
        parts.push(ribbon(x0, top, x1, top, keptRight, "stay", `${keptRight} stay right`));
        parts.push(ribbon(x0, y0 + r.fixed * unit, x1, y1 + r.broken * unit, keptWrong, "stay", `${keptWrong} stay wrong`));
        parts.push(ribbon(x0, y0, x1, top + keptRight * unit, r.fixed, "fixed", `${r.fixed} fixed`));
        parts.push(ribbon(x0, top + keptRight * unit, x1, y1, r.broken, "broken", `${r.broken} broken`));
        if (step > 110) parts.push(label((x0 + x1) / 2, height - 7, `+${r.fixed} fixed  \u2212${r.broken} broken`, { "text-anchor": "middle" }));
        else parts.push(label((x0 + x1) / 2, height - 7, `+${r.fixed} \u2212${r.broken}`, { "text-anchor": "middle" }));
      });
      rights.forEach((value, i) => {
        const end = i === rights.length - 1, anchor = i === 0 ? "start" : end ? "end" : "middle";
        const tx = i === 0 ? at(i) : end ? at(i) + bar : at(i) + bar / 2;
        parts.push(s("rect", { class: "node-right", x: at(i), y: top, width: bar, height: value * unit }));
        parts.push(s("rect", { class: "node-wrong", x: at(i), y: top + value * unit + (value ? 1 : 0), width: bar, height: Math.max(0, (n - value) * unit - 1) }));
        parts.push(label(tx, 16, `${i ? (step > 120 ? "round " : "r") + rounds[i - 1].round : step > 120 ? "first chains" : "first"} ${percent(value / n)}`, { class: "strong", "text-anchor": anchor }));
      });
      return { height, parts };
    };
    return h("div", { class: "split" }, h("div", {},
      chart("How many answers were right before and after each round; the numbers are in the table below", draw),
      h("ul", { class: "legend" }, h("li", {}, s("svg", { "aria-hidden": "true" }, s("rect", { class: "node-right", x: 4, width: 12, height: 12 })), "right"), h("li", {}, s("svg", { "aria-hidden": "true" }, s("rect", { class: "node-wrong", x: 4, width: 12, height: 12 })), "wrong"))),
      h("div", {}, table(["Round", "Refined", "Fixed", "Broken", "Still right", "Still wrong", "Accuracy"], rounds.map((r) => [
        String(r.round), count(r.active), count(r.fixed), count(r.broken), count(r.stayed_right), count(r.stayed_wrong), percent(r.right / n)]), "Rounds"),
      panel.unknown ? h("p", { class: "missing" }, `Left out: ${count(panel.unknown)} of the graded problems, of which it is not on file what was kept in their rounds.`) : null));
  }

  // ---- calibration -------------------------------------------------------------------------------------------------
  function reliability(name, what, found) {
    if (found.missing) return h("div", {}, h("h4", {}, name), missing(found));
    const draw = (width) => {
      const left = 34, right = 6, side = clamp(width - left - right, 120, 300), top = 8, base = top + side;
      const x = (v) => left + v * side, y = (v) => base - v * side, most = Math.max(...found.bins.map((b) => b.n)) || 1;
      return { height: base + 40, parts: [
        found.bins.map((b) => s("rect", { class: "bar", x: x(b.low) + 1, width: side / 10 - 2, y: base - (b.n / most) * side * 0.28, height: (b.n / most) * side * 0.28 }, s("title", {}, `${count(b.n)} scores from ${b.low.toFixed(1)} to ${b.high.toFixed(1)}`))),
        [0, 0.5, 1].map((v) => [label(left - 6, y(v) + 4, v === 0.5 ? "0.5" : String(v), { "text-anchor": "end" }), label(x(v), base + 16, v === 0.5 ? "0.5" : String(v), { "text-anchor": "middle" })]),
        s("line", { class: "axis", x1: left, x2: x(1), y1: base, y2: base }), s("line", { class: "axis", x1: left, x2: left, y1: top, y2: base }),
        s("line", { class: "diagonal", x1: left, y1: base, x2: x(1), y2: top }),
        s("path", { class: "line", stroke: "var(--run-0)", d: found.bins.filter((b) => b.n).map((b, i) => `${i ? "L" : "M"}${x(b.mean_score)} ${y(b.share_right)}`).join("") }),
        found.bins.filter((b) => b.n).map((b) => s("circle", { cx: x(b.mean_score), cy: y(b.share_right), r: 4, fill: "var(--run-0)" }, s("title", {}, `mean score ${b.mean_score.toFixed(2)}: ${percent(b.share_right)} right, ${count(b.n)} scores`))),
        label(x(1), base + 33, "mean score", { "text-anchor": "end" }), label(left + 5, top + 10, "share right"),
      ] };
    };
    return h("div", {}, h("h4", {}, name), chart(`Reliability of ${name}: share right by mean score; the numbers are in the table below`, draw),
      h("dl", { class: "facts" },
        h("dt", {}, "AUROC"), h("dd", {}, found.auroc === null ? "not defined: all right or all wrong" : found.auroc.toFixed(3)),
        h("dt", {}, "Calibration error"), h("dd", {}, fixed(found.calibration_error, 3)), h("dt", {}, "Brier score"), h("dd", {}, fixed(found.brier, 3)),
        h("dt", {}, "Scores"), h("dd", {}, `${count(found.n)} ${what}, ${percent(found.right / found.n)} right${found.unscored ? `; ${count(found.unscored)} unscored` : ""}`)),
      numbers(["Scores", "Count", "Mean", "Right"], found.bins.map((b) => [`${b.low.toFixed(1)} to ${b.high.toFixed(1)}`, count(b.n), fixed(b.mean_score, 3), percent(b.share_right)]), name));
  }
  const calibrationFigure = (run) => (run.calibration.missing ? missing(run.calibration) : h("div", { class: "figures three" },
    reliability("Outcome scores o", "chains", run.calibration.orm), reliability("Process scores s", "chains", run.calibration.prm), reliability("Step scores", "steps", run.calibration.steps)));

  // ---- tokens, troubles --------------------------------------------------------------------------------------------
  function tokensFigure(run) {
    const rows = run.tokens;
    if (rows.missing) return missing(rows);
    const most = Math.max(...rows.map((r) => r.prompt + r.completion), 1);
    const groups = [...new Set(rows.map((r) => r.group))];
    const sum = (list, name) => list.reduce((total, row) => total + row[name], 0);
    const unmetered = sum(rows, "unmetered");
    return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Tokens by role" }, h("table", { class: "bars" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Role"), ["Prompt", "Completion", "Calls"].map((name) => h("th", { scope: "col", class: "n" }, name)), h("th", {}))),
      h("tbody", {}, groups.map((group) => {
        const members = rows.filter((r) => r.group === group);
        return [
          h("tr", { class: "group" }, h("th", { scope: "row" }, group), h("td", { class: "n" }, count(sum(members, "prompt"))), h("td", { class: "n" }, count(sum(members, "completion"))), h("td", { class: "n" }, count(sum(members, "calls"))), h("td", {})),
          members.map((r) => h("tr", {}, h("th", { scope: "row", title: r.model }, r.role, many ? null : [" ", h("bdi", { class: "muted small" }, r.model)]), h("td", { class: "n" }, count(r.prompt)), h("td", { class: "n" }, count(r.completion)), h("td", { class: "n" }, count(r.calls)),
            h("td", { class: "track" }, s("svg", { "aria-hidden": "true", viewBox: "0 0 100 10", preserveAspectRatio: "none" }, s("rect", { class: "prompt", x: 0, y: 1, height: 8, width: (100 * r.prompt) / most }), s("rect", { class: "completion", x: (100 * r.prompt) / most, y: 1, height: 8, width: (100 * r.completion) / most }))))),
        ];
      })))),
      h("ul", { class: "legend" }, h("li", {}, s("svg", { "aria-hidden": "true" }, s("rect", { x: 4, width: 12, height: 12, fill: "var(--run-5)", opacity: 0.55 })), "prompt"), h("li", {}, s("svg", { "aria-hidden": "true" }, s("rect", { x: 4, width: 12, height: 12, fill: "var(--run-0)" })), "completion")),
      unmetered ? h("p", { class: "missing" }, `Calls without token counts: ${count(unmetered)}. The tokens are a lower bound.`) : null];
  }
  function troublesFigure(run, at) {
    if (run.troubles.missing) return missing(run.troubles);
    if (!run.troubles.length) return h("p", { class: "missing" }, "None: no failure, no abstention, no missing score and no warning.");
    const wheres = [...new Set(run.troubles.map((t) => t.where))];
    return wheres.map((where) => [h("h4", { class: "where" }, where), h("ul", { class: "troubles" }, run.troubles.filter((t) => t.where === where).map((t) => h("li", {},
      h("span", { class: "n" }, h("strong", {}, count(t.count)), t.of ? h("span", { class: "muted" }, ` of ${count(t.of)}`) : ""),
      h("div", {}, h("bdi", {}, t.what.slice(0, 300)), h("details", {}, h("summary", {}, t.problems.length === 1 ? "Which problem" : "Which problems"),
        t.problems.map((id, i) => [i ? ", " : "", h("button", { type: "button", class: "link", onclick: () => openCase(at, data.runs[at].cases.id.indexOf(id), true) }, id)]), t.problems.length >= 20 ? " …" : "")))))]);
  }

  // ---- cases: list, filters ----------------------------------------------------------------------------------------
  const ROW = 64;
  const view = { run: 0, routing: "all", change: "all", outcome: "all", against: "all", query: "", deep: false, found: [], at: 0, wanted: 0 };
  const list = document.getElementById("case-list"), detail = document.getElementById("case"), space = h("div", { class: "space" });
  const cases = () => data.runs[view.run].cases;
  const places = data.runs.map((run) => new Map(run.cases.id.map((id, i) => [id, i])));
  const outcomeOf = (rows, i) => (rows.stop[i] === "failed" ? "failed" : rows.answer[i] === null ? "abstained" : rows.right[i] === null ? "not graded" : rows.right[i] ? "right" : "wrong");
  const glyph = { right: ["✓", "right"], wrong: ["✗", "wrong"], abstained: ["∅", "none"], failed: ["!", "wrong"], "not graded": ["·", "none"] };
  const sign = (outcome) => h("span", { class: `glyph ${glyph[outcome][1]}`, role: "img", "aria-label": outcome }, glyph[outcome][0]);
  const lowered = data.runs.map(() => null);
  function haystack() {
    const rows = cases();
    return (lowered[view.run] ??= rows.id.map((id, i) => [id, rows.question[i], rows.answer[i], rows.gold[i]].filter((part) => part !== null).join("\n").toLowerCase()));
  }
  function against(i) {
    const first = places[0].get(cases().id[i]);
    if (first === undefined) return null;
    const before = data.runs[0].cases.right[first], now = cases().right[i];
    return before === null || now === null ? null : before === now ? "same" : now ? "gained" : "lost";
  }
  function matches(i, rows) {
    if (view.routing !== "all" && rows.easy[i] !== (view.routing === "easy" ? 1 : 0)) return false;
    if (view.change !== "all" && rows.change[i] !== view.change) return false;
    if (view.against !== "all" && view.run > 0 && against(i) !== view.against) return false;
    return view.outcome === "all" || outcomeOf(rows, i) === view.outcome;
  }
  async function filter(keep) {
    const mine = ++view.wanted, rows = cases(), before = view.found[view.at];
    const query = view.query.trim().toLowerCase();
    let found = rows.id.map((_, i) => i).filter((i) => matches(i, rows));
    if (query) {
      const texts = haystack();
      const plain = new Set(found.filter((i) => texts[i].includes(query)));
      if (view.deep) {
        say("Searching …");
        const open = new Set(found);
        for (const first of data.runs[view.run].chunks) {
          const part = await chunk(view.run, first);
          if (mine !== view.wanted) return;
          part.forEach((one, offset) => { if (open.has(first + offset) && written(one).includes(query)) plain.add(first + offset); });
        }
      }
      found = found.filter((i) => plain.has(i));
    }
    view.found = found;
    const kept = keep ? found.indexOf(before) : -1;
    view.at = Math.max(0, kept);
    say(`${count(found.length)} of ${count(rows.id.length)} problems`);
    space.style.height = `${found.length * ROW}px`;
    list.replaceChildren(found.length ? space : h("p", { class: "empty" }, rows.id.length ? "No problem fits these filters." : "This run has no results yet."));
    if (kept < 0) list.scrollTop = 0;
    paint();
    await show();
  }
  const written = (one) => [...one.chains.flatMap((c) => [...c.text, ...(c.thinking || [])].map((p) => p[0])), ...one.reviews.map((r) => r.text)].join("\n").toLowerCase();
  const say = (text) => { document.getElementById("case-count").textContent = text; };
  function paint() {
    const rows = cases(), first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4), last = Math.min(view.found.length, first + Math.ceil(list.clientHeight / ROW) + 9);
    const drawn = [];
    for (let place = first; place < last; place++) {
      const i = view.found[place], outcome = outcomeOf(rows, i), versus = view.run > 0 ? against(i) : null;
      const row = h("div", { class: "row", role: "option", id: `row-${place}`, "aria-selected": place === view.at ? "true" : "false", "aria-setsize": view.found.length, "aria-posinset": place + 1, "data-place": place },
        h("div", { class: "head" }, sign(outcome), h("bdi", { class: "id" }, rows.id[i]),
          h("span", { class: "tags" }, rows.easy[i] !== null && h("span", { class: "tag" }, rows.easy[i] ? "easy" : "hard"),
            (rows.change[i] === "fixed" || rows.change[i] === "broken") && h("span", { class: `tag ${rows.change[i] === "fixed" ? "right" : "wrong"}` }, rows.change[i]),
            (versus === "gained" || versus === "lost") && h("span", { class: `tag ${versus === "gained" ? "right" : "wrong"}` }, versus))),
        h("div", { class: "text" }, h("bdi", {}, (rows.question[i] || `answer ${rows.answer[i] === null ? "none" : rows.answer[i]}`).slice(0, 140))));
      row.style.top = `${place * ROW}px`;
      drawn.push(row);
    }
    space.replaceChildren(...drawn);
    if (view.found.length) list.setAttribute("aria-activedescendant", `row-${view.at}`);
    else list.removeAttribute("aria-activedescendant");
  }
  function move(place) {
    if (!view.found.length) return;
    view.at = clamp(place, 0, view.found.length - 1);
    const top = view.at * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    paint();
    show();
  }
  const pageful = () => Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
  const MOVES = { ArrowDown: () => view.at + 1, j: () => view.at + 1, ArrowUp: () => view.at - 1, k: () => view.at - 1, Home: () => 0, End: () => view.found.length - 1, PageDown: () => view.at + pageful(), PageUp: () => view.at - pageful() };

  /** Another run, without filters or with them; the case of that index shown, its list scrolled to it. */
  function openCase(run, index, focus) {
    if (index < 0) return;
    if (run !== view.run || !view.found.includes(index)) { reset(run); }
    move(view.found.indexOf(index));
    if (focus) { detail.focus({ preventScroll: true }); (matchMedia("(max-width: 60rem)").matches ? detail : document.getElementById("cases")).scrollIntoView({ block: "start" }); }
  }
  function reset(run) {
    Object.assign(view, { run, routing: "all", change: "all", outcome: "all", against: "all", query: "", deep: false });
    drawFilters();
    view.found = cases().id.map((_, i) => i);
    view.at = 0;
    view.wanted++;
    say(`${count(view.found.length)} of ${count(view.found.length)} problems`);
    space.style.height = `${view.found.length * ROW}px`;
    list.replaceChildren(space);
  }
  function pills(name, title, options, able = true) {
    return h("fieldset", {}, h("legend", {}, title), h("div", { class: "pills" }, options.map((option) => h("label", {},
      h("input", { type: "radio", name, value: option, checked: view[name] === option, disabled: !able && option !== "all", onchange: () => { view[name] = option; filter(true); } }), option))));
  }
  let typing = 0;
  function drawFilters() {
    const rows = cases(), form = document.getElementById("filters");
    const any = (test) => rows.id.some((_, i) => test(i));
    const outcomes = ["right", "wrong", "abstained", "failed"].filter((name) => name === "right" || name === "wrong" || any((i) => outcomeOf(rows, i) === name));
    form.replaceChildren(...[
      many && h("div", {}, h("label", { class: "name", for: "run-choice" }, "Run"), h("select", { id: "run-choice", onchange: (event) => { reset(Number(event.target.value)); filter(false); } }, data.runs.map((run, at) => h("option", { value: at, selected: at === view.run }, run.label)))),
      pills("routing", "Routed", ["all", "easy", "hard"], any((i) => rows.easy[i] !== null)),
      pills("change", "By the rounds", ["all", "fixed", "broken"], any((i) => rows.change[i] === "fixed" || rows.change[i] === "broken")),
      pills("outcome", "Answer", ["all", ...outcomes], any((i) => outcomeOf(rows, i) !== "not graded")),
      view.run > 0 && pills("against", `Against ${data.runs[0].label}`, ["all", "gained", "lost"]),
      h("div", { class: "search" }, h("label", { class: "name", for: "search" }, "Search"), h("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", placeholder: "id, question or answer", value: view.query,
        oninput: (event) => { view.query = event.target.value; clearTimeout(typing); typing = setTimeout(() => filter(true), 80); } })),
      h("label", { class: "deep" }, h("input", { type: "checkbox", id: "deep", checked: view.deep, onchange: (event) => { view.deep = event.target.checked; if (view.query) filter(true); } }), "in chains and reviews too"),
    ].filter(Boolean));
  }

  // ---- cases: one problem ------------------------------------------------------------------------------------------
  const opened = new Map();
  /** The details of a chunk of problems, unpacked when they are first asked for; the last few stay unpacked. */
  function chunk(run, first) {
    const key = `${run}-${first}`;
    if (!opened.has(key)) {
      const bytes = Uint8Array.from(atob(document.getElementById(`chunk-${key}`).textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      opened.set(key, new Response(stream).json());
      if (opened.size > 12) opened.delete(opened.keys().next().value);
    }
    return opened.get(key);
  }
  async function details(run, index) {
    const firsts = data.runs[run].chunks;
    let low = 0, high = firsts.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (firsts[middle] <= index) low = middle; else high = middle - 1; }
    return (await chunk(run, firsts[low]))[index - firsts[low]];
  }
  let showing = 0;
  async function show() {
    const mine = ++showing, run = view.run, index = view.found[view.at];
    if (index === undefined) { detail.replaceChildren(h("p", { class: "muted" }, "No case is selected.")); return; }
    if (typeof DecompressionStream === "undefined") { detail.replaceChildren(h("p", { class: "missing" }, "This browser is too old to unpack the cases (it has no DecompressionStream).")); return; }
    const found = await details(run, index);
    if (mine !== showing) return;
    detail.replaceChildren(...story(run, index, found));
    watch(detail);
  }
  const tier = (score) => `s${Math.min(4, Math.floor(score * 5 + 1e-9))}`;
  const chip = (score, reason) => (score === null ? h("span", { class: "chip none", title: reason || "no score" }, "–") : h("span", { class: `chip ${tier(score)}` }, score.toFixed(2)));
  function textBlock(pieces) {
    if (pieces.every((piece) => piece.length === 1)) return h("div", { class: "text-block" }, pieces.map((p) => p[0]).join("").trim() || "(empty)");
    return h("div", {}, pieces.map((piece) => (piece.length === 1 ? h("div", { class: "text-block" }, piece[0].trim()) : h("div", { class: "step" }, chip(piece[1], piece[2]),
      h("div", { class: "text-block" }, piece[0].trim(), piece[1] === null && piece[2] ? h("span", { class: "muted small" }, ` (unscored: ${piece[2]})`) : null)))));
  }
  const who = (chain) => (chain.role === "solver" || chain.role === "refiner" ? `${chain.role === "solver" ? "Chain" : "Refinement"} ${chain.index + 1}` : chain.id.split("/").slice(-4).join("/"));
  function chainCard(chain, found, byId) {
    const outcome = chain.answer === null ? "abstained" : chain.right === null ? "not graded" : chain.right ? "right" : "wrong";
    const scores = [["o", chain.o], ["s", chain.s], ["S", chain.S]].filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value.toFixed(2)}`);
    const parent = chain.parent && byId.get(chain.parent);
    const last = Math.max(...chain.kept, -1);
    return h("section", { class: `chain${chain.id === found.chosen ? " chosen" : ""}`, "aria-label": who(chain) },
      h("div", { class: "head" }, sign(outcome), h("h4", {}, who(chain)), chain.answer === null ? h("span", { class: "muted" }, "no answer", chain.why ? ` (${chain.why})` : "") : h("span", {}, h("span", { class: "muted" }, "answers "), h("bdi", { class: "answer" }, chain.answer.slice(0, 200))),
        chain.id === found.chosen && h("span", { class: "tag right" }, "chosen"), chain.stop && h("span", { class: "tag warn" }, `ended by ${chain.stop}`)),
      h("p", { class: "scores" }, [scores.join(" · ") || "no scores", chain.unscored && `o unscored: ${chain.unscored}`, chain.tokens !== null && `${count(chain.tokens)} tokens`, parent ? `from ${who(parent).toLowerCase()}${parent.round ? ` of round ${parent.round}` : ""}` : null,
        found.rounds > 1 && (last < 0 ? "not kept" : `kept to round ${last}`)].filter(Boolean).join(" · ")),
      chain.thinking && h("details", {}, h("summary", {}, "Thinking"), textBlock(chain.thinking)), textBlock(chain.text));
  }
  function reviewBlock(review) {
    const name = review.role === "meta-reviewer" ? "Meta-review" : review.role === "reviewer" ? `Review ${review.instance + 1}` : `${review.role} ${review.instance + 1}`;
    return h("details", { class: "review" }, h("summary", {}, name, " ", review.decision ? h("span", { class: `tag ${review.decision}` }, review.decision) : review.role === "meta-reviewer" ? h("span", { class: "tag warn" }, "unstated") : null,
      review.confidence !== undefined ? h("span", { class: "muted small" }, ` confidence ${review.confidence}`) : null, review.answer !== undefined ? h("span", { class: "muted small" }, " recommends ", h("bdi", {}, review.answer.slice(0, 80))) : null),
      h("div", { class: "text-block" }, review.text.trim() || "(empty)"));
  }
  function verdictLines(verdict) {
    const held = (value) => (value === null ? "not judged" : value ? "holds" : "fails");
    return [h("dt", {}, "Routed"), h("dd", {}, h("strong", {}, verdict.easy ? "easy" : "hard"), " by the ", h("bdi", {}, verdict.router), " router"),
      verdict.condition_1 !== null && [h("dt", {}, "Condition 1"), h("dd", {}, `${held(verdict.condition_1)}: mean z of the majority ${fixed(verdict.z, 4)}, 0 is needed`)],
      verdict.condition_2 !== null && [h("dt", {}, "Condition 2"), h("dd", {}, `${held(verdict.condition_2)}: confidence o ${fixed(verdict.confidence_orm, 4)}, s ${fixed(verdict.confidence_prm, 4)}, 0.5 of both is needed`)]];
  }
  function story(run, index, found) {
    const rows = data.runs[run].cases, outcome = outcomeOf(rows, index), byId = new Map(found.chains.map((c) => [c.id, c]));
    found.rounds = rows.rounds[index];
    const numbersOfRounds = [...new Set([...found.chains.map((c) => c.round), ...found.reviews.map((r) => r.round)])].sort((a, b) => a - b);
    const state = (value) => (value === null || value === undefined ? "" : value ? "right" : "wrong");
    const parts = [
      h("header", {}, h("button", { type: "button", class: "link back", onclick: () => { list.focus(); list.scrollIntoView({ block: "nearest" }); } }, "← list"), sign(outcome), h("h3", {}, h("bdi", {}, rows.id[index])), h("span", { class: `tag ${outcome === "right" ? "right" : outcome === "wrong" || outcome === "failed" ? "wrong" : ""}` }, outcome),
        rows.change[index] && rows.change[index] !== "same" && h("span", { class: `tag ${rows.change[index] === "fixed" ? "right" : "wrong"}` }, `${rows.change[index]} by the rounds`),
        h("span", { class: "nav" }, h("button", { type: "button", "aria-label": "Previous problem", onclick: () => move(view.at - 1) }, "↑"), h("button", { type: "button", "aria-label": "Next problem", onclick: () => move(view.at + 1) }, "↓"))),
      rows.question[index] === null ? h("p", { class: "missing" }, "No question to show: ", data.runs[run].why_no_questions || "the run's data no longer has it", ".") : h("div", { class: "question text-block" }, rows.question[index]),
      found.error && h("p", { class: "remark" }, h("strong", {}, "Failed: "), h("bdi", {}, `${found.error[0]}: ${found.error[1]}`)),
      found.warnings.map((text) => h("p", { class: "remark" }, h("bdi", {}, text))),
      h("dl", { class: "facts" }, h("dt", {}, "Answer"), h("dd", {}, rows.answer[index] === null ? "none" : h("strong", {}, h("bdi", {}, rows.answer[index]))), h("dt", {}, "Gold"), h("dd", {}, rows.gold[index] === null ? "not known" : h("bdi", {}, rows.gold[index])),
        found.verdict && verdictLines(found.verdict), h("dt", {}, "Ended"), h("dd", {}, rows.stop[index], found.rounds > 1 ? ` after ${found.rounds - 1} round${found.rounds > 2 ? "s" : ""}` : "")),
    ];
    const others = data.runs.map((other, at) => [other, at, places[at].get(rows.id[index])]).filter(([, at, place]) => at !== run && place !== undefined);
    if (others.length) parts.push(h("p", { class: "muted small" }, "In the other runs: ", others.map(([other, at, place], i) => { const o = outcomeOf(other.cases, place); return [i ? "; " : "", h("button", { type: "button", class: "link", onclick: () => openCase(at, place, true) }, other.label), ` ${o}`, other.cases.answer[place] !== null ? [" (", h("bdi", {}, other.cases.answer[place].slice(0, 60)), ")"] : ""]; })));
    if (found.votes.length) parts.push(h("h3", {}, "Votes"), h("div", { class: "votes" }, table(["Answer", "Chains", "Weight"], found.votes.map(([answer, n, weight]) => [h("bdi", {}, answer.slice(0, 200)), count(n), fixed(weight, 4)]), "Votes")));
    if (found.abstained.length) parts.push(h("details", {}, h("summary", {}, `${count(found.abstained.length)} chain${found.abstained.length > 1 ? "s" : ""} abstained`), h("ul", { class: "small muted" }, found.abstained.map(([id, reason]) => h("li", {}, byId.has(id) ? who(byId.get(id)) : id, ": ", reason)))));
    if (!found.chains.length) parts.push(h("p", { class: "missing" }, "No chains of this problem are on file."));
    else if (found.chains.some((c) => c.text.some((p) => p.length > 1))) parts.push(h("p", { class: "scale" }, "Step scores", [0.1, 0.3, 0.5, 0.7, 0.9].map((v) => h("span", { class: `chip ${tier(v)}` }, `${(v - 0.1).toFixed(1)}–${(v + 0.1).toFixed(1)}`)), "reviewers look at those below 0.55"));
    for (const number of numbersOfRounds) {
      const chains = found.chains.filter((c) => c.round === number), reviews = found.reviews.filter((r) => r.round === number);
      parts.push(h("div", { class: "round-title" }, h("h4", {}, number ? `Round ${number}` : "First chains"), h("span", { class: "muted small" }, [chains.length && `${count(chains.length)} chain${chains.length > 1 ? "s" : ""}`, reviews.length && `${count(reviews.length)} review${reviews.length > 1 ? "s" : ""}`, found.after.length > 1 && number < found.after.length && state(found.after[number]) && `the answer after it is ${state(found.after[number])}`].filter(Boolean).join(" · "))));
      const about = new Map();
      for (const review of reviews) about.set(review.chain, [...(about.get(review.chain) || []), review]);
      const cards = chains.map((c) => { const mine = (c.parent && about.get(c.parent)) || []; about.delete(c.parent); return h("div", {}, mine.map(reviewBlock), chainCard(c, found, byId)); });
      for (const [id, rest] of about) cards.push(h("div", {}, h("p", { class: "muted small" }, "On ", byId.has(id) ? who(byId.get(id)).toLowerCase() : id), rest.map(reviewBlock)));
      parts.push(h("div", { class: "chains" }, cards));
    }
    if (found.usage.length) parts.push(h("details", {}, h("summary", {}, "What it cost"), table(["Role", "Prompt", "Completion", "Calls"], found.usage.map(([role, prompt, completion, calls]) => [role, count(prompt), count(completion), count(calls)]), "Tokens of this problem")));
    return parts.flat(9).filter((part) => part !== null && part !== undefined && part !== false);
  }

  // ---- wiring ------------------------------------------------------------------------------------------------------
  list.addEventListener("scroll", () => requestAnimationFrame(paint), { passive: true });
  list.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    move(Number(row.dataset.place));
    if (matchMedia("(max-width: 60rem)").matches) { detail.focus({ preventScroll: true }); detail.scrollIntoView({ block: "start" }); }
  });
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (MOVES[event.key]) { event.preventDefault(); move(MOVES[event.key]()); }
    else if (event.key === "Enter" && view.found.length) { event.preventDefault(); detail.focus(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && !/^(radio|checkbox)$/.test(event.target.type);
    if (event.key === "/" && !field) { event.preventDefault(); document.getElementById("search").focus(); }
    else if (event.key === "Escape" && (detail.contains(event.target) || event.target.id === "search")) { event.preventDefault(); list.focus(); }
    else if ((event.key === "j" || event.key === "k") && detail.contains(event.target)) { event.preventDefault(); move(MOVES[event.key]()); }
  });
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  new ResizeObserver(() => paint()).observe(list);
  /* A region is a stop of the Tab key only while it can be scrolled. */
  const overflowing = new ResizeObserver((entries) => { for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1; });
  const watch = (root) => { for (const region of root.querySelectorAll(".scroll")) overflowing.observe(region); };

  frontierPanel();
  figures("routing", routingFigure);
  figures("flow", flowFigure);
  figures("calibration", calibrationFigure, "one");
  figures("tokens", tokensFigure);
  figures("troubles", troublesFigure);
  document.getElementById("case-view").hidden = false;
  watch(document);
  view.run = Math.max(0, data.runs.findIndex((run) => run.cases.id.length));
  drawFilters();
  filter(false);
})();
