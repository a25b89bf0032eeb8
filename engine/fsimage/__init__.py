"""Images of a NameNode's namespace: containers, layouts, kernels, the columnar namespace and what it answers."""
