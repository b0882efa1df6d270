"""The base class of roles."""

from abc import ABCMeta


class _Inherited(ABCMeta):
    """A metaclass without virtual subclasses, so that ``isinstance`` needs no ABC registry.

    A decision checks a dozen roles; this saves a twentieth of its cost.
    """

    __instancecheck__ = type.__instancecheck__


class Role(metaclass=_Inherited):
    """A question that a syncer can answer."""
