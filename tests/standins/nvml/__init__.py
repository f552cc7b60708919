"""A stand-in for NVIDIA's management library, steered by a scenario file."""
