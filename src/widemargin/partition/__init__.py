"""Dividing samples into clusters that new samples can be routed to: kernel k-means, k-means, at random."""

from .divide import divide
from .kmeans import kmeans
from .mass import between_cluster_mass
from .regions import InputRegions, KernelRegions, RandomRegions, Regions

__all__ = [
    "InputRegions",
    "KernelRegions",
    "RandomRegions",
    "Regions",
    "between_cluster_mass",
    "divide",
    "kmeans",
]
