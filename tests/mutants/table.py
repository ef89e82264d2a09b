"""The table of what each group of tests costs and which mutants it detects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.mutants.groups import MODES, group_of

HEAD = """\
| group | seconds | `--full` | mutants tried | found | `--full` | only here |
|---|--:|--:|--:|--:|--:|--:|"""


class Table:
    """A table of results. `plain` are the tests that currently run without --full. A group's
    cost is that of a separate run, written as "wall (processors)", or else the sum of its tests'
    times."""

    def __init__(
        self,
        results: Iterable[dict[str, Any]],
        plain: set[str],
        seconds: dict[str, float],
        costs: dict[str, dict[str, dict[str, float]]],
    ) -> None:
        self.tried = [result for result in results if "plain" in result]
        self.plain = plain
        self.costs = costs
        self.cost: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
        for test, time in seconds.items():
            self.cost["full"][group_of(test)] += time
            self.cost["plain"][group_of(test)] += time if test in plain else 0

    def __str__(self) -> str:
        groups = set(self.cost["full"]).union(*(_groups(result) for result in self.tried))
        return "\n".join([HEAD, *map(self._row, sorted(groups)), "", *self._summary()])

    def _row(self, group: str) -> str:
        tried = [result for result in self.tried if group in _groups(result)]
        found = [result for result in tried if group in self._killers(result)]
        cells = [
            group,
            *(self._cost(group, mode) for mode in MODES),
            len(tried),
            sum(group in self._killers(result, self.plain) for result in found),
            len(found),
            sum(self._killers(result) == {group} for result in found),
        ]
        return f"| {' | '.join(map(str, cells))} |"

    def _cost(self, group: str, mode: str) -> str:
        if alone := self.costs.get(group, {}).get(mode):
            return f"{alone['wall']:.0f} ({alone['processor']:.0f})"
        return f"{self.cost[mode][group]:.0f}"

    def _killers(self, result: dict[str, Any], among: set[str] | None = None) -> set[str]:
        """Returns the groups in which a test failed. If `among` is given, ignores all other
        tests."""
        failed = [
            (group, tests)
            for mode in MODES
            for group, tests in result.get(mode, {}).get("failed", {}).items()
        ]
        return {
            group
            for group, tests in failed
            if among is None or any(test in among or "::" not in test for test in tests)
        }

    def _summary(self) -> list[str]:
        lines = []
        for language, folder in {"C": "cext/", "Python": "ggtok/"}.items():
            mine = [result for result in self.tried if result["name"].startswith(folder)]
            found = sum(bool(self._killers(result)) for result in mine)
            plain = sum(bool(self._killers(result, self.plain)) for result in mine)
            lines.append(
                f"{language}: {len(mine)} mutants; `pytest` finds {plain}, `pytest --full` {found}."
            )
        return lines


def _groups(result: dict[str, Any]) -> set[str]:
    """Returns the groups with a test that ran."""
    return {group for mode in MODES for group in result.get(mode, {}).get("ran", [])}
