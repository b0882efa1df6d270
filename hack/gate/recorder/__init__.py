"""A folder of its own, so that tests of a package under plugins/ load the recorder
and nothing else of this tree.
"""
