"""Partitions of the samples into clusters, and the routing of new samples: kernel k-means, k-means, random."""

from .divide import divide
from .kmeans import kmeans
from .mass import between_cluster_mass
from .routing import InputRouter, KernelRouter, RandomRouter, Router

__all__ = [
    "InputRouter",
    "KernelRouter",
    "RandomRouter",
    "Router",
    "between_cluster_mass",
    "divide",
    "kmeans",
]
