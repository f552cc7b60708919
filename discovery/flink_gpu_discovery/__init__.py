"""Discover, hand out and record the GPUs of a host for Apache Flink's task executors (FLIP-108)."""

__version__ = "0.1.0"
