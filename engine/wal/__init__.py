"""The write-ahead log: records, segments, write-thread models and recovery."""
