"""Draws demo.svg for README.md: a recording of `crsyncer demo`, as an animated terminal.

`python -m tests.delivery.recording` runs the demo and writes the picture. Without animation it shows the last lines.
"""

import re
import subprocess
import sys
import time
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "demo.svg"
COLUMNS, ROWS = 100, 28
CHARACTER, LINE, MARGIN = 7.3, 16.0, 14.0
"""The size of a character, the height of a line and the margin, in pixels."""
SHORTEST, LONGEST, END = 0.06, 1.0, 6.0
"""Seconds that a line is shown before the next one, and the last one at the end: a recording is quicker than life."""

FOLDER = re.compile(r"/\S*/crsyncer-sandbox-[^/]*/agent/state")
"""Where the demo's agent keeps its state: another folder in each run."""

Line = tuple[float, str]
"""When a line was written, in seconds, and the line."""


def record(command: list[str]) -> list[Line]:
    """Run the demo and note when it writes which line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    began = time.monotonic()
    lines = [(time.monotonic() - began, FOLDER.sub("/var/lib/crsyncer", line.rstrip("\n"))) for line in process.stdout]
    assert process.wait() == 0, "the demo failed"
    return lines


def picture(lines: list[Line]) -> str:
    """The recording as SVG: all lines in one column, which moves up as they are written."""
    ends = [moment for moment, _ in lines[1:]]
    shown = [min(LONGEST, max(SHORTEST, end - moment)) for (moment, _), end in zip(lines, [*ends, 0.0], strict=True)]
    shown[-1] = END
    total, passed, frames = sum(shown), 0.0, []
    for number, seconds in enumerate(shown, 1):
        frames.append(f"{passed / total:.3%} {{ transform: translateY({(ROWS - number) * LINE:.0f}px) }}")
        passed += seconds
    last = (ROWS - len(lines)) * LINE
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    texts = [
        f'<text y="{number * LINE + 12:.0f}"{_style(line)}>{escape(line)}</text>'
        for number, (_, line) in enumerate(lines)
        if line
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">',
            "<title>A recording of crsyncer demo</title>",
            "<style>",
            "text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #d4d4d4; white-space: pre }",
            ".step { fill: #ffffff; font-weight: bold } .ok { fill: #7ec699 } .bad { fill: #f2a65a }",
            f"#lines {{ transform: translateY({last:.0f}px); animation: write {total:.1f}s step-end infinite }}",
            f"@keyframes write {{ {' '.join(frames)} }}",
            "@media (prefers-reduced-motion) { #lines { animation: none } }",
            "</style>",
            f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#1e1e1e"/>',
            f'<svg x="{MARGIN:.0f}" y="{MARGIN:.0f}" width="{COLUMNS * CHARACTER:.0f}" height="{ROWS * LINE:.0f}">',
            '<g id="lines">',
            *texts,
            "</g>",
            "</svg>",
            "</svg>",
            "",
        ]
    )


def _style(line: str) -> str:
    if line.startswith("["):
        return ' class="step"'
    if line.strip().startswith("ok ") or line.startswith(("HEALTHY", "PASSED")):
        return ' class="ok"'
    return ' class="bad"' if line.startswith(("OFFLINE", "STOPPED")) else ""


if __name__ == "__main__":
    PICTURE.write_text(picture(record([sys.executable, "-u", "-m", "crsyncer.cli.main", "demo"])))
