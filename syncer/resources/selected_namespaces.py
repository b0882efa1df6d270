"""The virtual namespaces that selectors of an object find now, with bounds on the work that a
tenant can make of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from syncer.api import Context, Key, Obj, Refused, Side, TooLarge, labels_of, selectors
from syncer.resources.kinds import NAMESPACES

#: The index of virtual Namespaces by label: by ``key`` and ``key=value``.
BY_LABEL = "label"
#: Most labels of a Namespace that are indexed, so that the index stays small; the value for those
#: with more, whose labels are read instead.
MOST_LABELS = 16
MORE_LABELS = "/more-labels"
#: Most namespaces that the selectors of an object may find in all, as its copy grows with them.
MOST_NAMESPACES = 5000
#: Most labels, expressions and values in the namespace selectors of an object. Each is looked up.
MOST_EXPRESSIONS = 1000
#: Most comparisons with Namespaces whose labels aren't indexed, for an object.
MOST_COMPARED = 100_000
#: Most lookups of Namespaces in sets of the index, for an object. Each takes 50 ns.
MOST_LOOKED_UP = 1_000_000


def label_values(namespace: Obj) -> Iterable[str]:
    """Return the values of the index for a virtual Namespace."""
    labels = labels_of(namespace)
    if len(labels) > MOST_LABELS:
        return (MORE_LABELS,)
    pairs = (_pair(name, value) for name, value in labels.items())
    return (*labels, *pairs)


def decisive_values(selector: Obj) -> Iterable[str]:
    """Yield the values of the index that decide whether a selector selects a Namespace.

    A Namespace gains or loses one of them whenever the selector begins or ceases to select it,
    unless the Namespace appears or goes, or isn't indexed.
    """
    for name, value in (selector.get("matchLabels") or {}).items():
        yield _pair(name, value)
    for expression in selector.get("matchExpressions") or ():
        name = expression["key"]
        values = expression.get("values") or ()
        for value in values:
            yield _pair(name, value)
        if not values:
            yield name


@dataclass(slots=True)
class NamespaceSelection:
    """The namespaces that selectors of one object find, counted."""

    ctx: Context
    #: The name of the syncer's index with :func:`label_values` of all virtual Namespaces.
    index: str
    #: For messages: the object, its parts with selectors, and the field that they are in.
    subject: str
    parts: str
    path: str
    namespaces: int = 0
    expressions: int = 0
    compared: int = 0
    looked_up: int = 0
    #: The namespaces that a selector finds, by selector.
    found: dict[str, list[str]] = field(default_factory=dict)
    #: The indexed Namespaces, by value of the index.
    having: dict[str, frozenset[Key]] = field(default_factory=dict)
    #: All indexed Namespaces; None until they are needed.
    everything: frozenset[Key] | None = None
    #: The labels of the Namespaces that aren't indexed; None until they are read.
    crowded: dict[Key, Mapping[str, str]] | None = None

    def count(self, named: int) -> None:
        """Count namespaces that the object names.

        Raises:
            TooLarge: There are too many.
        """
        self.namespaces += named
        if self.namespaces > MOST_NAMESPACES:
            why = f"{self.subject} names more than {MOST_NAMESPACES} namespaces"
            how = f"use fewer {self.parts}, or name fewer"
            raise TooLarge(f"{why}; {how}", path=self.path)

    def selected(self, selector: Obj) -> list[str]:
        """Return the namespaces that a selector finds.

        Raises:
            TooLarge: The object's selectors have too many expressions.
            Refused: They find too many namespaces, or would take too many comparisons; or no API
                server accepts the selector.
        """
        size = selector_size(selector)
        self.expressions += size
        if self.expressions > MOST_EXPRESSIONS:
            why = f"{self.subject} has more than {MOST_EXPRESSIONS} expressions and values"
            raise TooLarge(f"{why} for namespaces; use fewer", path=self.path)
        if why := selectors.fault(selector):
            raise Refused(f"a namespaceSelector {why}", path=self.path)

        written = repr(selector)
        if written not in self.found:
            keys = (*self._indexed(selector), *self._others(selector, size))
            self.found[written] = [key.name for key in keys]
        found = self.found[written]

        self.namespaces += len(found)
        if self.namespaces > MOST_NAMESPACES:
            why = f"the selectors find more than {MOST_NAMESPACES} namespaces"
            why = f"{why} in all its {self.parts}"
            how = f"use fewer {self.parts}, or namespaceSelector: {{}} for all"
            raise Refused(f"{why}; {how}", path=self.path)
        return found

    def _indexed(self, selector: Obj) -> frozenset[Key]:
        """Return the Namespaces that a selector finds among those whose labels are indexed.

        The search begins with the smallest set, so that a set of all Namespaces is only made for a
        selector that just excludes some.
        """
        values_of_required, excluded = _wanted(selector)

        required = []
        for values in values_of_required:
            sets = [self._having(value) for value in values]
            if not any(sets):
                return frozenset()
            required.append(sets)
        required.sort(key=_total)
        first = required.pop(0) if required else [self._all()]

        lookups = 1 + sum(len(sets) for sets in required) + len(excluded)
        self._count(_total(first) * lookups)

        # A single set is taken as it is: a union would copy it.
        found = first[0] if len(first) == 1 else frozenset[Key]().union(*first)
        for sets in required:
            found = frozenset().union(*(found & one for one in sets))
        for value in excluded:
            if found:
                found -= self._having(value)
        return found

    def _count(self, number: int) -> None:
        self.looked_up += number
        if self.looked_up > MOST_LOOKED_UP:
            why = f"the selectors in all its {self.parts} compare labels of namespaces"
            why = f"{why} more than {MOST_LOOKED_UP} times"
            how = f"use fewer {self.parts}, or labels that few namespaces have"
            raise Refused(f"{why}; {how}", path=self.path)

    def _all(self) -> frozenset[Key]:
        """Return all Namespaces whose labels are indexed."""
        if self.everything is None:
            keys = frozenset(self.ctx.reader.keys(Side.VIRTUAL, NAMESPACES))
            self.everything = keys.difference(self._crowded())
        return self.everything

    def _having(self, value: str) -> frozenset[Key]:
        """Return the keys of the Namespaces that the index has for a value."""
        if value not in self.having:
            keys = self.ctx.reader.indexed(Side.VIRTUAL, NAMESPACES, self.index, value)
            self.having[value] = frozenset(keys)
        return self.having[value]

    def _others(self, selector: Obj, size: int) -> Iterable[Key]:
        """Return the Namespaces that a selector finds among those whose labels aren't indexed."""
        crowded = self._crowded()
        self.compared += len(crowded) * size
        if self.compared > MOST_COMPARED:
            why = f"{self.subject} selects among too many namespaces"
            why = f"{why} with more than {MOST_LABELS} labels"
            how = f"use fewer {self.parts} or expressions, or fewer labels"
            raise Refused(f"{why}; {how}", path=self.path)
        return [key for key, labels in crowded.items() if selectors.matches(selector, labels)]

    def _crowded(self) -> Mapping[Key, Mapping[str, str]]:
        """Return the labels of the Namespaces that have too many to be indexed."""
        if self.crowded is None:
            self.crowded = {}
            for key in self.ctx.reader.indexed(Side.VIRTUAL, NAMESPACES, self.index, MORE_LABELS):
                namespace = self.ctx.virtual(NAMESPACES, key)
                if namespace is not None:
                    self.crowded[key] = labels_of(namespace)
        return self.crowded


def _wanted(selector: Obj) -> tuple[list[list[str]], list[str]]:
    """Return the values of the index that a selector requires and excludes.

    Returns:
        Lists of values, of each of which a Namespace must have one; and the values that a Namespace
        must not have.
    """
    labels = selector.get("matchLabels") or {}
    required = [[_pair(name, value)] for name, value in labels.items()]
    excluded = []
    for expression in selector.get("matchExpressions") or ():
        name = expression["key"]
        pairs = [_pair(name, value) for value in expression.get("values") or ()]
        match expression["operator"]:
            case "In":
                required.append(pairs)
            case "NotIn":
                excluded.extend(pairs)
            case "Exists":
                required.append([name])
            case "DoesNotExist":
                excluded.append(name)
    return required, excluded


def selector_size(selector: Obj) -> int:
    """Return the number of labels, expressions and values in a selector."""
    size = len(selector.get("matchLabels") or ())
    for each in selector.get("matchExpressions") or ():
        size += 1 + len(each.get("values") or ())
    return size


def _total(sets: Iterable[frozenset[Key]]) -> int:
    """Return the number of Namespaces in sets, each time counted."""
    return sum(map(len, sets))


def _pair(name: str, value: str) -> str:
    return f"{name}={value}"
