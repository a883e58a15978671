"""One file per paper, each like its pseudo-code."""
