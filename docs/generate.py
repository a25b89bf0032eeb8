"""The generated pages of docs/reference: `make docs` writes them, tests/docs fails where they differ.

cli.md      each command's own help
metrics.md  the output of `tidegauge metrics`
keys.md     the table of keys
errors.md   every error that a user can meet
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"


def main() -> None:
    """Write each page that differs and say so."""
    for name, page in PAGES.items():
        text, path = page(), REFERENCE / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


def cli_page() -> str:
    """Return cli.md."""
    from dashboard.cli.reference import cli_reference

    return cli_reference()


def metrics_page() -> str:
    """Return metrics.md."""
    from dashboard.exporter.reference import metrics_reference

    return metrics_reference()


def keys_page() -> str:
    """Return keys.md."""
    from dashboard.keys import KEYS

    lines = ["# Keys", "", "What `?` shows in the dashboard. Generated from the one table of keys.", ""]
    lines += ["| key | what it does | about |", "|---|---|---|"]
    lines += [f"| `{key.shown}` | {key.help} | {key.group} |" for key in KEYS]
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Return errors.md."""
    import engine
    from engine.errors import TidegaugeError

    for module in pkgutil.walk_packages(engine.__path__, "engine."):
        importlib.import_module(module.name)
    lines = [
        "# Errors",
        "",
        "Every error of the engine. Its text is one line that says what, where and what is allowed; commands print it",
        "to stderr after `tidegauge:` and exit with 1, or 2 where a value was wrong. A caller of the library catches",
        "`engine.errors.TidegaugeError`, or one of these. Generated from the classes.",
        "",
        "| error | kind of | meaning |",
        "|---|---|---|",
    ]
    for error in sorted(_below(TidegaugeError), key=lambda each: (each.__module__, each.__name__)):
        (meaning, *_) = (inspect.getdoc(error) or "").split("\n\n")
        parent = error.__bases__[0].__name__
        lines.append(f"| `{error.__module__}.{error.__name__}` | `{parent}` | {' '.join(meaning.split())} |")
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "metrics.md": metrics_page,
    "keys.md": keys_page,
    "errors.md": errors_page,
}


def _below(error: type[Exception]) -> Iterator[type[Exception]]:
    for child in error.__subclasses__():
        if child.__module__.startswith("engine."):
            yield child
            yield from _below(child)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
