"""The size of caches, in entries that take a few bytes each.

What they forget is worked out or done once more.
"""

#: Entries of a cache; the oldest are forgotten. 4,096 translated names take some 5 MB.
REMEMBERED = 4096
