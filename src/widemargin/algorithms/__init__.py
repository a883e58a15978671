"""One paper a file: its `Settings`, and `train`, which reads like its pseudo-code."""
