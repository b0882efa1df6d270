"""The kubelet of the virtual Nodes: logs, exec, attach and port-forward of a tenant's Pods, out of
the host.
"""
