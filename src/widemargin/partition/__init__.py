"""Partitions of the samples into clusters, and the routing of new samples.

::

    divide       two-step clustering of many samples, with balanced sizes
    routing      the rule that assigns samples to clusters: kernel k-means, k-means
    kmeans       k-means in input space and in feature space
    hierarchy    trees of k-means clusters
"""
