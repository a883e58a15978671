"""Kernel functions, tiles of them under a memory budget, and a cache of rows."""
