"""The look of the tour's page, light and dark."""

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --card: #ffffff; --ink: #1f2933; --soft: #66727f;
  --line: #e4e7eb; --accent: #2f6fab; --code: #f3f4f2; --shadow: 0 1px 2px #1f293314, 0 6px 24px #1f29330d; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --card: #1b2128; --ink: #e3e8ed; --soft: #98a4b0; --line: #313a44; --accent: #7fb2e0;
    --code: #12161b; --shadow: none; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.6 "Inter", "Source Sans 3", system-ui, "Segoe UI", sans-serif; }
header, main, footer { max-width: 66rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 4.5rem; }
h1, h2 { font-family: "Source Serif 4", Charter, Georgia, serif; font-weight: 600; letter-spacing: -.015em; }
h1 { font-size: clamp(2.6rem, 7vw, 4rem); line-height: 1.05; margin: .2rem 0 1.2rem; }
h2 { font-size: clamp(1.7rem, 4vw, 2.3rem); line-height: 1.15; margin: 0 0 .8rem; }
h3 { font-size: 1.2rem; line-height: 1.3; margin: 0 0 .5rem; }
p { margin: 0 0 1rem; max-width: 44rem; }
.over { color: var(--accent); font-weight: 600; margin: 0; }
.lead { font-size: 1.12rem; color: var(--soft); }
.time { white-space: nowrap; font-size: .85rem; margin-left: .3rem; border: 1px solid var(--line); border-radius: 99px;
  padding: .1rem .6rem; }
nav { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1.6rem 0 0; }
nav a { color: var(--accent); text-decoration: none; border: 1px solid var(--line); border-radius: 99px;
  padding: .25rem .9rem; background: var(--card); }
nav a:hover { border-color: var(--accent); }
section { padding-top: 4rem; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow);
  padding: clamp(1.1rem, 3.5vw, 2.2rem); margin: 1.6rem 0; }
pre { margin: 0 0 1.2rem; padding: .7rem 1rem; background: var(--code); border-left: 3px solid var(--accent);
  border-radius: 0 8px 8px 0; overflow-x: auto; font-size: .86rem; line-height: 1.5; }
code { font-family: "JetBrains Mono", ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
figure { margin: .5rem 0 0; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .5rem; max-width: 44rem; }
.wide { overflow-x: auto; }
.wide svg { display: block; width: 100%; min-width: 36rem; height: auto; }
dl { display: flex; flex-wrap: wrap; gap: .8rem 2.6rem; margin: 1.4rem 0 0; padding-top: 1.2rem;
  border-top: 1px solid var(--line); }
dl div { display: flex; flex-direction: column-reverse; }
dt { color: var(--soft); font-size: .86rem; }
dd { margin: 0; font-size: 1.7rem; font-weight: 600; line-height: 1.2; font-variant-numeric: tabular-nums; }
footer { color: var(--soft); font-size: .88rem; padding-top: 2.5rem; padding-bottom: 4rem; }
@media print { body { background: none; } article { break-inside: avoid; box-shadow: none; } }
"""
