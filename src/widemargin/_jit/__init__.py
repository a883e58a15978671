"""The only room that imports numba: what is left of it."""
