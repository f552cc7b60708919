"""``python3 -m flink_gpu_discovery``: the command line without an installation."""

from flink_gpu_discovery.cli import run

if __name__ == "__main__":
    run()
