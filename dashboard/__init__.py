"""All that a person or Prometheus touches: command line, sources, history, exporter, screens."""
