"""How machines are trained: a method's parameters, and functions that read like the pseudo-code of its paper.

::

    dc_svm_levels         DC-SVM: clusters, early machines, the whole problem (Hsieh, Si, Dhillon, ICML 2014)
    pairs_and_targets     DC-SVM for all pairs of classes, or several targets, by where the rows are: for estimators
    dc_svm_on_workers     early DC-SVM of rows on the workers of a dask cluster
    dc_pred_leaves        DC-Pred++: a tree of small Nyström machines (Hsieh, Si, Dhillon, NIPS 2014)
    ocas                  optimised cutting planes for linear machines (Franc and Sonnenburg, ICML 2008)
    bsgd_epochs           budgeted stochastic gradient descent (Wang, Crammer, Vucetic, JMLR 2012)
    held_out              cross-validation of duals on a shared matrix: no paper's
    held_out_clusters     the same, cluster by cluster, for searches on all rows: no paper's
    relevance             columns scaled by their mean square gradients (Radhakrishnan et al., Science 2024)
    trained_machines      what a training of several machines returns
"""
