"""Stand-ins for GPU libraries, command-line tools and kernel files, for tests on machines without GPUs."""
