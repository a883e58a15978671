"""Kernel functions, tiles of them under a memory budget, and products with kernel rows."""
