"""The exporter: one snapshot per scrape, as Prometheus text, as JSON, and as a health answer."""
