"""The dual of kernel machines: minimise 1/2 beta'K beta - t'beta over a box and, with an intercept, at a fixed sum.

::

    problem             the dual problem of each machine (`DualProblem`)
    certificate         objective, duality gap and KKT violation of a feasible point
    solver              n of any size: rounds on an active set, kernel rows streamed for the rest
    side_by_side        several problems on the same rows, such as folds: the solver's rounds, kernel entries shared
    in_memory           one problem whose kernel matrix is in memory
    subproblems         many problems on parts of one such matrix, one a thread
    newton              Newton steps on the free coordinates, where coordinate steps stall
    stopping            when a solver ends before its tolerance: a stall, or rounding that hides a violation
    float64_correction  corrections in float64 where float32 entries hide a violation
    dual_path           the same problem for ascending C, each from the solution before
    memory              how many bytes the active set's matrix gets

Ways to solve a dual, by what is kept of K. A *full matrix* is the kernel matrix of all rows of a problem, a
*shared matrix* a full one that several problems read; both are *in memory*: computed before the solve. ::

    what is kept of K      entry                    callers, and for which sizes
    -------------------    ---------------------    -----------------------------------------------------------------
    full or shared         subproblems              DC-SVM without levels: up to 1,024 rows, or up to 2,896 if eight
    matrix; problems on    .solve_on_full_matrix    or more share the matrix (`dc_svm_levels.suits_full_matrix`)
    parts of its rows      .find_points             OCAS: X X' of up to 1,024 rows and columns (`accelerations`)

    full or shared         in_memory                clusters of DC-SVM: up to 6,000 rows (`dc_svm_levels._solve_part`)
    matrix; problems on    .solve_in_memory         folds and Cs of a search: what the memory allows (`held_out`)
    all of its rows                                 leaves of DC-Pred++: up to 3,000 rows (`dc_pred_leaves`)
                           .solve_several_in_       several targets: more than 512 rows, in up to half the memory
                               memory               budget (`pairs_and_targets.SeveralMachines.run`)

    active matrix: that    solver                   all other duals: the whole problem and the refine step of DC-SVM,
    of the active set      .DualSolver              larger clusters, larger folds, a shrunk problem

    nothing: sums are      solver                   the same with more than 4,096 active rows, where these are short and
    computed from rows     .DualSolver              most entries round to nothing (`kernels.boxed_rows.far_distance`)

    the same two, for      side_by_side             folds of a search whose matrix does not fit in memory (`held_out`)
    several problems       .solve_side_by_side

Working sets of 512 rows solve the first two, and the active set of each round of the third (by
`in_memory.WorkingSetSolver`; in `subproblems` all is compiled, a problem a thread).
"""
