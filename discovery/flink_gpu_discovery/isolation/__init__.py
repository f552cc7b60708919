"""Confinement of a task executor to its GPUs by a device cgroup, version 1 or 2."""
