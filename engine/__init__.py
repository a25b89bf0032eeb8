"""The engines of tidegauge: three storage write paths that do real work on real files, without a screen."""
