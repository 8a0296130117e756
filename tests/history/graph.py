"""Strongly connected components, and a short cycle in one. Nodes are numbers; kinds of edges are bits."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Edges = Sequence[dict[int, int]]
"""Of each node: where its edges lead, and of which kinds they are."""


def components(edges: Edges, kinds: int) -> list[list[int]]:
    """Those of more than one node, over edges of these kinds. Tarjan's algorithm, without recursion."""
    count = len(edges)
    numbers, lows = [-1] * count, [0] * count
    is_on_stack = bytearray(count)
    stack: list[int] = []
    found: list[list[int]] = []
    next_number = 0
    for root in range(count):
        if numbers[root] >= 0 or not edges[root]:
            continue
        work = [(root, iter(edges[root].items()))]
        numbers[root] = lows[root] = next_number
        next_number += 1
        stack.append(root)
        is_on_stack[root] = 1
        while work:
            node, targets = work[-1]
            for target, kind in targets:
                if not kind & kinds:
                    continue
                if numbers[target] < 0:
                    numbers[target] = lows[target] = next_number
                    next_number += 1
                    stack.append(target)
                    is_on_stack[target] = 1
                    work.append((target, iter(edges[target].items())))
                    break
                if is_on_stack[target]:
                    lows[node] = min(lows[node], numbers[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    lows[parent] = min(lows[parent], lows[node])
                if lows[node] == numbers[node]:
                    component = _pop_component(stack, is_on_stack, node)
                    if len(component) > 1:
                        found.append(component)
    return found


def _pop_component(stack: list[int], is_on_stack: bytearray, root: int) -> list[int]:
    component = []
    while True:
        node = stack.pop()
        is_on_stack[node] = 0
        component.append(node)
        if node == root:
            return component


MOST_STARTS = 100


def shortest_cycle(edges: Edges, kinds: int, component: Sequence[int], required: int) -> list[int] | None:
    """With at least one edge of a required kind. In a large component the shortest of those that a part of such edges
    begin."""
    inside = set(component)
    best: list[int] | None = None
    starts = 0
    for start in sorted(component):
        for target, kind in edges[start].items():
            if kind & required and target in inside:
                starts += 1
                path = _shortest_path(edges, kinds, inside, target, start)
                if path is not None and (best is None or len(path) < len(best)):
                    best = path
        if best is not None and (len(best) == 2 or starts >= MOST_STARTS):
            break
    return best


def _shortest_path(edges: Edges, kinds: int, inside: set[int], start: int, end: int) -> list[int] | None:
    came_from: dict[int, int] = {start: start}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node == end:
            path = [end]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path[::-1]
        for target, kind in edges[node].items():
            if kind & kinds and target in inside and target not in came_from:
                came_from[target] = node
                queue.append(target)
    return None
