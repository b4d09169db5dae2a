"""The style sheet of the page for people: light and dark, desk and phone, without anything from elsewhere."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f6f7f9; --card: #fff; --line: #e1e5ea; --ink: #1b2430; --soft: #5b6675; --faint: #b4bcc6; --tint: #fdf3f1;
  --good: #2e8b57; --busy: #2f6fdb; --queue: #a9bbd3; --sent: #79b3ac; --later: #cba52c;
  --bad: #c9372c; --stuck: #8f3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #11151b; --card: #191f27; --line: #2b343f; --ink: #e5e9ee; --soft: #98a3b0; --faint: #515c69;
    --tint: #271b1c; --good: #48ab76; --busy: #6b9cf2; --queue: #4d5f7a; --sent: #468a82; --later: #c9a63a;
    --bad: #f0695d; --stuck: #c47fd3;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 86rem; padding: 1.1rem 1.5rem 2rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
header { display: flex; flex-wrap: wrap; gap: .6rem 2rem; align-items: flex-start; justify-content: space-between; }
h1, h2, h3, p, ul { margin: 0; padding: 0; }
h1 { font-size: 1.4rem; font-weight: 650; }
h2 { margin: 1.3rem 0 .45rem; font-size: .95rem; font-weight: 650; }
h2 a, h3 small, .soft { color: var(--soft); font-size: .87rem; font-weight: 400; }
h3 { font-size: .95rem; font-weight: 650; }
a { color: var(--busy); }
code { font: .9em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
p, td:first-child, .why { overflow-wrap: anywhere; }
.do { user-select: all; border: 1px solid var(--line); border-radius: 4px; padding: .05rem .35rem; }
.mark, i { display: inline-block; width: .65em; height: .65em; border-radius: 50%; background: var(--c, var(--soft)); }
.mark { margin-right: .5em; }
i { border-radius: 2px; margin-right: .45em; }
.healthy, .ready { --c: var(--good); } .inFlight { --c: var(--busy); } .waiting { --c: var(--queue); }
.stamped { --c: var(--sent); } .deferred, .degraded { --c: var(--later); } .failed, .attention { --c: var(--bad); }
.blocked { --c: var(--stuck); }
form { display: flex; gap: .4rem; }
input, button {
  font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .35rem .75rem; min-width: 0;
}
button { cursor: pointer; }
input:focus-visible, button:focus-visible { outline: 2px solid var(--busy); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
li { display: grid; grid-template-columns: 12rem 1fr; gap: 0 1rem; }
.needs { margin-top: 1rem; border-left: 4px solid var(--c, var(--soft)); }
ul { list-style: none; }
li, .more { padding: .5rem .9rem; }
li + li, .card > .more, tbody tr { border-top: 1px solid var(--line); }
.card > .more:first-child { border-top: 0; }
li p + p:not(.soft) { margin-top: .35rem; }
.more { color: var(--soft); font-size: .87rem; }
li .more { padding: .2rem 0 0; }
.totals { display: flex; flex-wrap: wrap; gap: .2rem 2.4rem; padding: .6rem .9rem; color: var(--soft); }
.totals b { color: var(--ink); font-size: 1.4rem; font-weight: 600; margin-right: .4rem; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .55rem; text-align: right; white-space: nowrap; }
th { font-weight: 500; font-size: .8rem; color: var(--soft); padding-top: .5rem; }
td:first-child, th:first-child { text-align: left; padding-left: .9rem; white-space: normal; }
td:last-child, th:last-child { padding-right: .9rem; }
.left { text-align: left; }
.why { white-space: normal; }
.wide { width: 22%; min-width: 8rem; }
.hurt { background: var(--tint); }
.zero { color: var(--faint); }
td.failed, td.blocked { color: var(--c); font-weight: 650; }
.tag {
  display: inline-block; margin-left: .45rem; padding: 0 .45rem; border: 1px solid var(--line); border-radius: 9px;
  color: var(--soft); font-size: .78rem; white-space: nowrap;
}
.tag.bad { color: var(--bad); border-color: currentColor; }
svg { display: block; width: 100%; height: .55rem; border-radius: 3px; background: var(--line); }
rect { fill: var(--c); }
details { margin-top: .8rem; color: var(--soft); font-size: .87rem; }
summary { cursor: pointer; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0 0; }
dt { color: var(--ink); }
dd { margin: 0; }
@media (max-width: 48rem) {
  body { padding: .9rem .8rem 2rem; }
  header > *, .wide { width: 100%; }
  li { display: block; }
  input { flex: 1; }
  table, tbody { display: block; }
  thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .55rem .9rem; }
  tbody tr:first-child { border-top: 0; }
  td, td:first-child, td:last-child { padding: 0; text-align: left; }
  td:first-child, td.why { width: 100%; }
  td.wide { padding: .35rem 0; }
  td[data-of]::after { content: " " attr(data-of); color: var(--soft); font-size: .87rem; font-weight: 400; }
  td.zero { display: none; }
}
"""
