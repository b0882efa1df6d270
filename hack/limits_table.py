"""The table of limits in docs/architecture/limits.md, compared with the constants and the options
of the code.

A row begins with the constant, as ``NAME`` of ``module``, or with the path of an option. Its second
cell is the value, which hack/generate writes in the unit that the cell names: B, s, or any other
word, or none.
"""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel

from syncer.config import option_at

Number: TypeAlias = "float | tuple[Number, ...]"

PAGE = "docs/architecture/limits.md"
BEGIN = "<!-- limits: values written by hack/generate -->"
END = "<!-- end of limits -->"
#: Constants that bound nothing, as ``module NAME``, each with what they are instead. A constant
#: without a row that is none of these is a fault.
NO_LIMITS = {
    r"testing/.*": "what tests take, not the daemon",
    r".*(_SINCE|API_VERSION)": "a version",
    r".*(JITTER|_SPREAD)": "a random spread of a time that has a row",
    r".*(OVERHEAD|budget\.py (VALUE|FREE_VALUES)|OTHER_FILES)": "an estimate of what a thing takes",
    r"translate/cel_cost\.py (_\w+|CHARACTERS)": "a price in the estimate of an expression's cost",
    r".*(LOOK_WEIGHT|DECIDED|ORPHAN|LOOKED_AT)": "a weight in a sum that has a row",
    r".*(BYTES_OF_A_READ|lane\.py LATEST)": "a weight in a sum that has a row",
    r".*(HTTPS| PORT)": "a port",
    r".*(_DIGITS|_KEY_BITS)": "the form of a name or a key that we make",
    r".*contention\.py WIDTH": "the form of a record that we make",
    r".*( M_\w+_THRESHOLD|_EXPLICIT_0|_UTC_TIME|_FASTEST|_GZIP)": "a code of a format or a library",
    r".*(_INEXACT|_LARGEST|_GARBLED| NANO|usage\.py TOO_LARGE)": "a number of a format",
    r".*(budgets\.py NOTHING|_limit\.py _NONE)": "a number that means none",
    r".*patch_paths\.py (UNKNOWN|ABSENT|GONE)": "a hash that stands for a value",
    r".*dry_run\.py LATEST": "a version that is made up",
    r".*(TOKEN_SECONDS|_LIFETIME)": "what Kubernetes takes by default",
    r"resources/pods/volumes\.py (_OF_OWNER|_OF_ALL)": "the mode of a file",
    r"lease_times\.py \w+": "the default of an option",
    r"rights/flow_schema\.py _\w+": "a value in an object that an operator applies",
    r".*(metrics\.py BOUNDS|_WIDTH|EXAMPLES|pki\.py MEMBERS)": "the form of output or a trial",
    r".*(bodies\.py _SHARE|client\.py _STEP)": "a rule of a search",
    r".*(field_errors\.py _LONG|host_texts\.py _LABELS)": "a rule of a search",
    r".*(LEAST_SECONDS|SOON)": "a rounding",
    r".*exec_plugin\.py _POLL_INTERVAL": "the resolution of a wait that ends by itself",
}
#: The functions and classes with a number as an argument that bounds something.
_BOUNDED = frozenset(
    {"lru_cache", "LRUCache", "TTLCache", "Semaphore", "deque", "timeout", "sleep", "wait_for"}
)
_BOUNDED |= {"call_later", "TokenBucket", "stop_after_attempt"}
_KEYWORDS = frozenset({"maxsize", "maxlen", "timeout"})
#: From this number on, a slice of a text or a list is a limit and not a part of a form.
_CUT = 10
#: Bare numbers in such places that need no name.
NO_NAMES = {
    "engine/reconcile/calls.py": "caches of what the syncers declare, as many as there are syncers",
    "engine/reconcile/dispatch.py": "what a plugin returned by mistake",
    "names/vcluster_compat.py": "names as vcluster makes them",
}

_CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*")
_ROW = re.compile(r"\| `([\w.]+)` of `([\w/]+\.py)` \| ([^|]*) \|")
_OPTION = re.compile(r"\| option `([\w.\[\]*]+)` \| ([^|]*) \|")
_UNIT = re.compile(r"[^\d.,\s]*$")
_BYTES = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
_SECONDS = {"h": 3600, "min": 60, "s": 1}


def constants(root: Path) -> dict[tuple[str, str], Number]:
    """Return the numeric constants below ``root/syncer``, by module and name; of a class as
    ``Class.NAME``.

    A constant that is another name for one is left out, and so is an infinite one.
    """
    found: dict[tuple[str, str], Number] = {}
    for module, tree in _modules(root):
        names = list(_names(tree.body, ""))
        if not names:
            continue
        imported = importlib.import_module(f"syncer.{module.removesuffix('.py').replace('/', '.')}")
        for name in names:
            value: object = imported
            for part in name.split("."):
                value = getattr(value, part)
            if _is_number(value):
                found[module, name] = value  # type: ignore[assignment]
    return found


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((root / "syncer").rglob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            yield path.relative_to(root / "syncer").as_posix(), ast.parse(path.read_text())


def _names(body: Iterable[ast.stmt], prefix: str) -> Iterator[str]:
    """Yield the names in capitals that these statements assign, but for those of an enumeration."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            if not any(
                "Enum" in ast.unparse(base) or "Flag" in ast.unparse(base)
                for base in statement.bases
            ):
                yield from _names(statement.body, f"{prefix}{statement.name}.")
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and not isinstance(
            statement.value, ast.Name | None
        ):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(each, ast.Name) and _CONSTANT.fullmatch(each.id):
                        yield f"{prefix}{each.id}"


def _is_number(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_number, value))
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) != float("inf")
    )


def bare_numbers(root: Path) -> Iterator[str]:
    """Yield the places, as ``module:line``, of numbers that bound something and have no name."""
    for module, tree in _modules(root):
        if module in NO_NAMES or module.startswith("testing/"):
            continue
        for node in ast.walk(tree):
            if any(
                isinstance(each, ast.Constant) and _is_number(each.value) and each.value
                for each in _bounds(node)
            ):
                yield f"{module}:{node.lineno}"  # type: ignore[attr-defined]


def _bounds(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions in a node that bound something."""
    if isinstance(node, ast.Call):
        called = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if called in _BOUNDED:
            yield from node.args
        yield from (
            each.value for each in node.keywords if called in _BOUNDED or each.arg in _KEYWORDS
        )
    elif (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Slice)
        and not _is_digest(node.value)
    ):
        for each in (node.slice.lower, node.slice.upper):
            number = each.operand if isinstance(each, ast.UnaryOp) else each
            if (
                isinstance(number, ast.Constant)
                and isinstance(number.value, int)
                and number.value >= _CUT
            ):
                yield number
    elif isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        cut = re.search(r"\.(\d+)'$", ast.unparse(node.format_spec).removeprefix("f"))
        if cut and int(cut[1]) >= _CUT:
            yield ast.Constant(int(cut[1]))


def _is_digest(node: ast.expr) -> bool:
    """Return True for a digest, or an identifier: its length is a part of its form."""
    return any(form in ast.unparse(node) for form in ("digest()", ".hex"))


def with_values(page: str, known: Mapping[tuple[str, str], Number], model: type[BaseModel]) -> str:
    """Return a page with the present values in its rows of limits.

    A row of a constant or an option that isn't there is left as it is: :func:`faults` names it.
    """
    head, begin, rest = page.partition(BEGIN)
    table, end, tail = rest.partition(END)
    return (
        head
        + begin
        + "\n".join(_valued(line, known, model) for line in table.split("\n"))
        + end
        + tail
    )


def _valued(line: str, known: Mapping[tuple[str, str], Number], model: type[BaseModel]) -> str:
    if found := _ROW.match(line):
        value = known.get((found[2], found[1]))
    elif found := _OPTION.match(line):
        option = option_at(model, found[1])
        value = _seconds(option.default) if option is not None else None
    else:
        return line
    cell = found.lastindex or 0
    if value is None:
        return line
    return (
        f"{line[: found.start(cell)]}{shown(value, found[cell].strip())}{line[found.end(cell) :]}"
    )


def _seconds(default: object) -> Number:
    """Return the default of an option as a number; one that is written as ``10m`` in seconds."""
    text = str(default)
    if re.fullmatch(r"\d+[smh]", text):
        return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
    return float(text) if "." in text else int(text)


def shown(value: Number, cell: str) -> str:
    """Return a number with the unit at the end of a cell: ``shown(524288,
    "256 KiB")`` is ``512 KiB``.
    """
    if isinstance(value, tuple):
        return ", ".join(shown(each, cell) for each in value)
    unit = _UNIT.search(cell)
    name, rate, _ = (unit[0] if unit else "").partition("/s")
    for units in (_BYTES, _SECONDS):
        if name in units or (name == "ms" and units is _SECONDS):
            value, name = _in_units(value, units)
    number = f"{value:,}" if isinstance(value, int) or value >= 1000 else f"{value:.3g}"
    return f"{number.removesuffix('.0')}{' ' if name or rate else ''}{name}{rate}"


def _in_units(value: float, units: Mapping[str, int]) -> tuple[float, str]:
    """Return a number in the largest unit in which it is a whole one. A minute is 60 s."""
    if units is _SECONDS and 0 < value < 1:
        return value * 1000, "ms"
    for name, size in units.items():
        if value and value % size == 0 and (name != "min" or value > size):
            return int(value) // size, name
    return value, min(units, key=lambda name: units[name])


def faults(
    page: str, known: Mapping[tuple[str, str], Number], model: type[BaseModel]
) -> Iterator[str]:
    """Yield the faults of the rows of a page, each with the way to mend it."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    rows = [(found[2], found[1]) for found in map(_ROW.match, table.split("\n")) if found]
    for row in sorted({row for row in rows if rows.count(row) > 1}):
        yield f"{PAGE} has two rows for {row[1]} of {row[0]}: remove one"
    for module, name in sorted(set(rows) - known.keys()):
        missing = f"{name} of {module}, which isn't a numeric constant there"
        yield f"{PAGE} has a row for {missing}: remove or correct it"
    for option in [found[1] for found in map(_OPTION.match, table.split("\n")) if found]:
        if option_at(model, option) is None:
            missing = f"the option {option}, which doesn't exist"
            yield f"{PAGE} has a row for {missing}: remove or correct it"
    for module, name in sorted(known.keys() - set(rows)):
        if not any(re.fullmatch(form, f"{module} {name}") for form in NO_LIMITS):
            line = f"| `{name}` of `{module}` | s | … |"
            yield (
                f"{name} of syncer/{module} has no row in the table of limits: add `{line}` to"
                f" {PAGE}, with B for bytes or nothing for a number in place of s, and run"
                " hack/generate; or, if it bounds nothing, add its form to NO_LIMITS of"
                " hack/limits_table.py"
            )
    for form in NO_LIMITS:
        if not any(
            re.fullmatch(form, f"{module} {name}") for module, name in known.keys() - set(rows)
        ):
            unused = f"{form!r}, which is the form of no constant"
            yield f"NO_LIMITS of hack/limits_table.py has {unused}: remove it"
