"""Optimisation only: arrays in, arrays out."""
