"""CustomResourceDefinitions: public ones of the host in the virtual cluster, and selected ones of
the tenant on the host.
"""
