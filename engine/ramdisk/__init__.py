"""The RAM-disk lane: files are written to memory, persisted lazily, evicted when they are safe."""
