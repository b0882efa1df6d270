"""The virtual namespaces that selectors of an object find now, with bounds on the work that a tenant can make of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from syncer.api import Context, Key, Obj, Refused, Side, TooLarge, labels_of, selectors
from syncer.resources.kinds import NAMESPACES

#: The index of virtual Namespaces by label: by ``key`` and ``key=value``.
BY_LABEL = "label"
#: Most labels of a Namespace that are indexed, so that the index stays small; the value for those
#: with more, whose labels are read instead.
MOST_LABELS, MORE_LABELS = 16, "/more-labels"
#: Most namespaces that the selectors of an object may find in all, as its copy grows with them.
MOST_NAMESPACES = 5000
#: Most labels, expressions and values in the namespace selectors of an object, as each is looked up.
MOST_EXPRESSIONS = 1000
#: Most comparisons with Namespaces whose labels aren't indexed, for an object.
MOST_COMPARED = 100_000
#: Most Namespaces that are looked up in sets of the index for an object, each time counted; it takes 50 ns.
MOST_LOOKED_UP = 1_000_000


def label_values(namespace: Obj) -> Iterable[str]:
    """Return the values of the index for a virtual Namespace."""
    labels = labels_of(namespace)
    if len(labels) > MOST_LABELS:
        return (MORE_LABELS,)
    return (*labels, *(_pair(name, value) for name, value in labels.items()))


def decisive_values(selector: Obj) -> Iterable[str]:
    """Return the values of the index that a Namespace gains or loses whenever a selector begins or ceases to select it.

    It may also appear or go, and its labels may not be indexed.
    """
    yield from (_pair(name, value) for name, value in (selector.get("matchLabels") or {}).items())
    for expression in selector.get("matchExpressions") or ():
        yield from (_pair(expression["key"], value) for value in expression.get("values") or ())
        if not expression.get("values"):
            yield expression["key"]


@dataclass(slots=True)
class NamespaceSelection:
    """The namespaces that selectors of one object find, counted."""

    ctx: Context
    #: The name of the syncer's index with :func:`label_values` of all virtual Namespaces.
    index: str
    #: For messages: the object, its parts with selectors, and the field that they are in.
    whose: str
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
            why = f"{self.whose} names more than {MOST_NAMESPACES} namespaces; use fewer {self.parts}, or name fewer"
            raise TooLarge(why, path=self.path)

    def selected(self, selector: Obj) -> list[str]:
        """Return the namespaces that a selector finds.

        Raises:
            TooLarge: The object's selectors have too many expressions.
            Refused: They find too many namespaces, or too many whose labels aren't indexed would have
                to be read.
        """
        size = _size(selector)
        self.expressions += size
        if self.expressions > MOST_EXPRESSIONS:
            why = f"{self.whose} has more than {MOST_EXPRESSIONS} expressions and values for namespaces; use fewer"
            raise TooLarge(why, path=self.path)
        written = repr(selector)
        if written not in self.found:
            self.found[written] = [key.name for key in (*self._indexed(selector), *self._others(selector, size))]
        found = self.found[written]
        self.namespaces += len(found)
        if self.namespaces > MOST_NAMESPACES:
            why = f"the selectors find more than {MOST_NAMESPACES} namespaces in all its {self.parts}"
            raise Refused(f"{why}; use fewer {self.parts}, or namespaceSelector: {{}} for all", path=self.path)
        return found

    def _indexed(self, selector: Obj) -> frozenset[Key]:
        """Return the Namespaces that a selector finds among those whose labels are indexed.

        Begins with the fewest that it may find, so that a set of all is only made for one that just excludes.
        """
        if (wanted := _wanted(selector)) is None:
            return frozenset()
        required, excluded = [], wanted[1]
        for values in wanted[0]:
            required.append([self._having(value) for value in values])
            if not any(required[-1]):
                return frozenset()
        required.sort(key=lambda each: sum(map(len, each)))
        first = required.pop(0) if required else [self._all()]
        self._count(sum(map(len, first)) * (1 + sum(map(len, required)) + len(excluded)))
        found = frozenset().union(*first) if len(first) > 1 else first[0]
        for each in required:
            found = frozenset().union(*(found & one for one in each))
        for value in excluded:
            if found:
                found -= self._having(value)
        return found

    def _count(self, number: int) -> None:
        self.looked_up += number
        if self.looked_up > MOST_LOOKED_UP:
            why = f"the selectors in all its {self.parts} compare labels of namespaces more than {MOST_LOOKED_UP} times"
            raise Refused(f"{why}; use fewer {self.parts}, or labels that few namespaces have", path=self.path)

    def _all(self) -> frozenset[Key]:
        """Return all Namespaces whose labels are indexed."""
        if self.everything is None:
            self.everything = frozenset(self.ctx.reader.keys(Side.VIRTUAL, NAMESPACES)).difference(self._crowded())
        return self.everything

    def _having(self, value: str) -> frozenset[Key]:
        """Return the keys of the Namespaces that the index has for a value."""
        if value not in self.having:
            self.having[value] = frozenset(self.ctx.reader.indexed(Side.VIRTUAL, NAMESPACES, self.index, value))
        return self.having[value]

    def _others(self, selector: Obj, size: int) -> Iterable[Key]:
        """Return the Namespaces that a selector finds among those whose labels aren't indexed."""
        crowded = self._crowded()
        self.compared += len(crowded) * size
        if self.compared > MOST_COMPARED:
            why = f"{self.whose} selects among too many namespaces with more than {MOST_LABELS} labels"
            raise Refused(f"{why}; use fewer {self.parts} or expressions, or fewer labels", path=self.path)
        return [key for key, labels in crowded.items() if selectors.matches(selector, labels)]

    def _crowded(self) -> Mapping[Key, Mapping[str, str]]:
        if self.crowded is None:
            keys = self.ctx.reader.indexed(Side.VIRTUAL, NAMESPACES, self.index, MORE_LABELS)
            read = ((key, self.ctx.virtual(NAMESPACES, key)) for key in keys)
            self.crowded = {key: labels_of(namespace) for key, namespace in read if namespace is not None}
        return self.crowded


def _wanted(selector: Obj) -> tuple[list[list[str]], list[str]] | None:
    """Return lists of values of the index, of each of which a Namespace must have one, and the values that
    it must not have; None if the selector selects nothing.
    """
    required, excluded = [[_pair(name, value)] for name, value in (selector.get("matchLabels") or {}).items()], []
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
            case _:
                return None
    return required, excluded


def _size(selector: Obj) -> int:
    """Return the number of labels, expressions and values in a selector."""
    expressions = selector.get("matchExpressions") or ()
    return len(selector.get("matchLabels") or ()) + sum(1 + len(each.get("values") or ()) for each in expressions)


def _pair(name: str, value: str) -> str:
    return f"{name}={value}"
