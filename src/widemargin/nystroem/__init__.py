"""Nyström approximation: landmarks, pseudo-landmarks, their features, the matrix between them, and leaf machines."""
