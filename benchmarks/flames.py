"""A flame graph as SVG: of each function the time of all that it calls as its width, callers below what they call.

Widths are shares of the samples, not an order in time; what is narrower than `LEAST_SHARE` is not drawn. No script: the
name and shares of a frame are shown where the pointer stands on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from zlib import crc32

from benchmarks.profiles import Stacks

LEAST_SHARE = 0.003
MOST_DEPTH = 60
_WIDTH = 1200
_FRAME = 17
_LETTER = 6.1
_KINDS = 4
"""Tints in which frames beside each other can be told apart: classes `f0` to `f3` in the page's style."""


@dataclass(slots=True)
class _Node:
    samples: int = 0
    callees: dict[str, _Node] = field(default_factory=dict)


def flame_svg(stacks: Stacks, label: str) -> str:
    """The graph, as wide as its place in the page. label: for those who do not see it."""
    root = _Node()
    for names, count in stacks.items():
        node = root
        node.samples += count
        for name in names[:MOST_DEPTH]:
            node = node.callees.setdefault(name, _Node())
            node.samples += count
    frames = list(_frames(root, root.samples, 0.0, 0)) if root.samples else []
    depth = 1 + max((each.depth for each in frames), default=0)
    drawn = "".join(each.svg(depth) for each in frames)
    box = f"0 0 {_WIDTH} {depth * _FRAME}"
    return f'<svg class="flame" role="img" aria-label="{escape(label)}" viewBox="{box}">{drawn}</svg>'


@dataclass(frozen=True, slots=True)
class _Frame:
    """left, share: of the whole width, 0 to 1. depth: 0 for the outermost."""

    name: str
    left: float
    share: float
    depth: int

    def svg(self, depth: int) -> str:
        x, width, y = self.left * _WIDTH, self.share * _WIDTH, (depth - 1 - self.depth) * _FRAME
        title = f"{escape(self.name)}: {self.share:.1%}"
        tint = crc32(self.name.encode(errors="replace")) % _KINDS
        letters = int((width - 6) / _LETTER)
        shown = self.name if len(self.name) <= letters else f"{self.name[: letters - 1]}…" if letters > 3 else ""
        text = f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(shown)}</text>' if shown else ""
        rect = f'<rect class="f{tint}" x="{x:.1f}" y="{y}" width="{max(width - 0.6, 0.4):.1f}" height="{_FRAME - 1}"/>'
        return f"<g><title>{title}</title>{rect}{text}</g>"


def _frames(node: _Node, samples: int, left: float, depth: int) -> Iterator[_Frame]:
    """The callees' frames, by name from the left, and what is above them."""
    for name, callee in sorted(node.callees.items()):
        share = callee.samples / samples
        if share >= LEAST_SHARE:
            yield _Frame(name, left, share, depth)
            yield from _frames(callee, samples, left, depth + 1)
        left += share
