// Updates the page by server-sent events, and sends its forms without leaving it. Without
// this script the page shows the same when it is loaded again.
"use strict";

(() => {
  const stream = document.body.dataset.live;
  if (!stream || !window.EventSource) return;
  const $ = (id) => document.getElementById(id);
  const filter = $("filter"), pause = $("pause"), notice = $("notice");
  let source = null, retry = 0, paused = false, stopped = false;
  let heard = Date.now(); // when the last update came
  let ahead = 0; // of the server's clock over ours, in milliseconds
  let announce = false; // say how many sessions match when the next update has come

  const status = (text, tone) => {
    const live = $("live");
    if (live.textContent !== text) live.textContent = text;
    live.className = "pill " + tone;
  };

  // morph makes one element like another one, and keeps the nodes that are the same: with
  // them the focus, the selection and the scroll position stay.
  const morph = (old, next) => {
    for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
    if (!old.dataset.rel) morphChildren(old, next); // the text of a relative time is written by tick
  };
  const keyOf = (node) => node.dataset?.key;
  const morphChildren = (parent, next) => {
    const keyed = new Map();
    for (const child of parent.children) if (keyOf(child)) keyed.set(keyOf(child), child);
    let old = parent.firstChild;
    for (const wanted of [...next.childNodes]) {
      const key = keyOf(wanted);
      let match = null;
      if (key) match = keyed.get(key);
      else if (old && old.nodeName === wanted.nodeName && !keyOf(old)) match = old;
      if (!match) {
        parent.insertBefore(wanted, old);
        continue;
      }
      if (match === old) old = old.nextSibling;
      else parent.insertBefore(match, old);
      if (match.nodeType !== Node.ELEMENT_NODE) {
        if (match.nodeValue !== wanted.nodeValue) match.nodeValue = wanted.nodeValue;
      } else morph(match, wanted);
    }
    while (old) {
      const rest = old;
      old = old.nextSibling;
      rest.remove();
    }
  };

  // What the server sends has been made by its templates, which write every name as text.
  const apply = ({ now, at, parts }) => {
    heard = Date.now();
    ahead = now - heard;
    $("at").textContent = at;
    const focused = document.activeElement;
    for (const { id, html } of parts || []) {
      const target = $(id);
      if (!target) continue;
      const next = document.createElement("template");
      next.innerHTML = html;
      morphChildren(target, next.content);
    }
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    tick();
    if (announce && $("range")) {
      announce = false;
      notice.className = "hidden";
      notice.textContent = $("range").textContent;
    }
  };

  // seconds is as in text.go.
  const seconds = (s) => {
    s = Math.max(0, Math.floor(s));
    if (s < 120) return s + " s";
    if (s < 7200) return Math.floor(s / 60) + " min";
    if (s < 172800) return Math.floor(s / 3600) + " h";
    return Math.floor(s / 86400) + " d";
  };
  const tick = () => {
    const now = Date.now() + ahead;
    for (const time of document.querySelectorAll("time[data-rel]")) {
      const away = (Date.parse(time.dateTime) - now) / 1000;
      let text = seconds(-away) + " ago";
      if (time.dataset.rel === "for") text = "for " + seconds(-away);
      if (time.dataset.rel === "in") text = away > 0 ? "in " + seconds(Math.ceil(away)) : "now";
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(() => {
    if (!source) return;
    tick();
    if (source.readyState === EventSource.OPEN && Date.now() - heard > 15000) status("No answer", "warning");
  }, 1000);

  const disconnect = () => {
    clearTimeout(retry);
    source?.close();
    source = null;
  };
  const connect = () => {
    disconnect();
    if (paused || stopped || document.hidden) return;
    source = new EventSource(stream + location.search);
    source.addEventListener("update", (event) => {
      status("Live", "good");
      apply(JSON.parse(event.data));
    });
    source.addEventListener("trouble", () => status("No answer", "warning"));
    source.addEventListener("stopped", () => {
      stopped = true;
      status("Stopped", "bad");
      disconnect();
    });
    source.onerror = () => {
      status("Not connected", "warning");
      if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again
      disconnect();
      retry = setTimeout(connect, 5000);
    };
  };
  document.addEventListener("visibilitychange", connect);

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    if (paused) status("Paused", "neutral");
    connect();
  });

  // show shows what a reference of this page leads to, without loading the page again.
  const show = (search, replace) => {
    history[replace ? "replaceState" : "pushState"](null, "", search || "?");
    announce = true;
    follow();
  };
  // fill puts what the address says into the filter.
  const fill = () => {
    const values = new URLSearchParams(location.search);
    for (const field of filter?.elements || []) if (field.name) field.value = values.get(field.name) || "";
  };
  // follow shows what the address says.
  const follow = () => {
    const json = new URLSearchParams(location.search);
    json.set("format", "json");
    $("json").search = json;
    if (paused) location.reload();
    else connect();
  };
  addEventListener("popstate", () => {
    fill();
    follow();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-nav]");
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || stopped) return;
    event.preventDefault();
    if (link.hasAttribute("aria-disabled")) return;
    show(link.search);
    fill();
  });
  if (filter) {
    const submit = (replace) => {
      const values = new URLSearchParams();
      for (const [name, value] of new FormData(filter)) if (value) values.set(name, value);
      const search = "?" + values;
      if (search !== location.search) show(search, replace);
    };
    let typing = 0;
    filter.addEventListener("input", (event) => {
      clearTimeout(typing);
      typing = setTimeout(submit, 250, event.target.name === "q"); // not each letter is a step back
    });
    filter.addEventListener("submit", (event) => {
      if (stopped) return;
      event.preventDefault();
      clearTimeout(typing);
      submit(false);
    });
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("[data-action]")) return;
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.ariaDisabled) return;
    button.ariaDisabled = "true"; // a button that is disabled would lose the focus
    let ok = false, text = "";
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/json" } });
      const said = await answer.json();
      ok = answer.ok;
      text = said.text || said.error;
    } catch (error) {
      text = "No answer: " + error.message;
    }
    button.ariaDisabled = null;
    notice.className = ok ? "" : "bad";
    notice.textContent = text;
  });

  connect();
})();
