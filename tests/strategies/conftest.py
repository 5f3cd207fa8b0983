"""Prints the table strategies x situations after the tests: the largest distance to one process over all ranks."""

import sys


def pytest_terminal_summary(terminalreporter):
    module = sys.modules.get("test_equivalence")
    if not module or not module.NOTED:
        return
    noted = module.NOTED
    ranks = sorted({n for _, n, _ in noted})
    situations = list(dict.fromkeys(s for _, _, s in noted))
    terminalreporter.section(f"distance to one process after 10 steps, worst of {', '.join(map(str, ranks))} ranks")
    width = max(map(len, situations))
    terminalreporter.line(" " * width + "  " + "  ".join(f"{s:>24}" for s in module.STRATEGIES))
    for situation in situations:
        worst = [max((d for (s, _, t), d in noted.items() if (s, t) == (strategy, situation)), default=None)
                 for strategy in module.STRATEGIES]
        terminalreporter.line(f"{situation:<{width}}  " + "  ".join(
            f"{'-' if d is None else f'{d:.1e}':>24}" for d in worst))
