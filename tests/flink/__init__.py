"""Tests of the discovery script against a real Flink, started by its own scripts on loopback."""
