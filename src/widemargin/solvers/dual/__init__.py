"""The dual of kernel machines: minimise 1/2 beta'K beta - t'beta over a box and, with an intercept, at a fixed sum.

::

    problem        the dual problem of each machine (`DualProblem`)
    certificate    objective, duality gap and KKT violation of a feasible point
    solver         n of any size: rounds on an active set, kernel rows streamed for the rest
    in_memory      one problem whose kernel matrix is in memory
    subproblems    many problems on parts of one such matrix, one a thread
    newton         Newton steps on the free coordinates, where coordinate steps stall
    stopping       when a solver ends before its tolerance: a stall, or rounding that hides a violation
    c_path         the same problem for ascending C, each from the solution before
    variable_block the variables of one worker, in a problem whose rows are on several
    memory         how many bytes the active set's matrix gets
"""
