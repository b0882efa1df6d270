"""What decides about a commit: the stages of ``hack/check`` and ``hack/test``,
and the verdict in their last lines.
"""
