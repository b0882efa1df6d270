"""CustomResourceDefinitions: public ones of the host in the virtual cluster, named ones of the tenant on the host."""
