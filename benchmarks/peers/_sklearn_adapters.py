"""This library's classes under scikit-learn's names and signatures, for scikit-learn's own tests.

A parameter is taken where it has the same meaning, or none for the result (`shrinking`, `cache_size`); others raise a
TypeError or a ValueError, as they do in the library. What else differs is written at each class.
"""

from __future__ import annotations

from typing import Any

from widemargin import BSGDClassifier, DCPredRegressor, DCSVMClassifier, LandmarkNystroem, OCASClassifier

made: set[str] = set()  # names of the adapters that were made since this was last cleared


class _Counted:
    def __new__(cls, *args: Any, **parameters: Any) -> Any:
        made.add(cls.__name__)
        return super().__new__(cls)


class SVC(_Counted, DCSVMClassifier):
    """`DCSVMClassifier` with the intercept that `SVC` always has. `probability` can only be False."""

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            C,
            kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            fit_intercept=True,
            tol=tol,
            class_weight=class_weight,
            verbose=verbose,
            max_iter=max_iter,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            random_state=random_state,
        )
        self.shrinking = shrinking
        self.probability = probability
        self.cache_size = cache_size

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.probability:
            raise ValueError("probability must be False: use CalibratedClassifierCV")


class LinearSVC(_Counted, OCASClassifier):
    """`OCASClassifier`: the hinge loss, where `LinearSVC` has its square by default; the intercept is not regularised.

    `multi_class`: both names are the same; `dual`, which only says how to solve, and `random_state` have no meaning.
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(
            C,
            tol=tol,
            multi_class=multi_class,
            fit_intercept=fit_intercept,
            class_weight=class_weight,
            verbose=verbose,
            max_iter=max_iter,
        )
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if (self.penalty, self.loss) != ("l2", "hinge"):
            raise ValueError(f"penalty and loss must be 'l2' and 'hinge', got {self.penalty!r} and {self.loss!r}")


class SGDClassifier(_Counted, BSGDClassifier):
    """`BSGDClassifier` with the linear kernel: `alpha` is its `lam`, `max_iter` its `n_epochs`.

    A machine of at most 100 rows, with an intercept that is regularised, and steps of 1 / (alpha t). With a `tol`, at
    most 20 passes are made.
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str = "l2",
        alpha: float = 0.0001,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: Any = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        n_jobs: Any = None,
        random_state: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: Any = None,
        average: bool = False,
    ) -> None:
        super().__init__(
            kernel="linear",
            maintenance="projection",
            lam=alpha,
            fit_intercept=fit_intercept,
            shuffle=shuffle,
            verbose=verbose,
            n_jobs=n_jobs,
            random_state=random_state,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            class_weight=class_weight,
            average=average,
        )
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self) -> None:
        self.lam = self.alpha  # after set_params
        self.n_epochs = self.max_iter if self.tol is None else min(self.max_iter, 20)
        super()._check_parameters()
        if (self.penalty, self.loss) != ("l2", "hinge"):
            raise ValueError(f"penalty and loss must be 'l2' and 'hinge', got {self.penalty!r} and {self.loss!r}")


class KernelRidge(_Counted, DCPredRegressor):
    """`DCPredRegressor` with a single leaf whose landmarks are all rows: the exact machine, without a linear term."""

    def __init__(
        self,
        alpha: float = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1,
    ) -> None:
        super().__init__(
            alpha,
            kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            n_clusters=1,
            n_landmarks=100_000,
            n_pseudo_landmarks=0,
            linear_term=False,
        )

    def _check_parameters(self) -> None:
        self.gamma = "auto" if self.gamma is None else self.gamma
        self.kernel = "poly" if self.kernel == "polynomial" else self.kernel
        super()._check_parameters()


class Nystroem(_Counted, LandmarkNystroem):
    """`LandmarkNystroem` with random rows as landmarks, as `Nystroem` has them, and a kernel by name."""

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = None,
        coef0: Any = None,
        degree: Any = None,
        n_components: int = 100,
        random_state: Any = None,
        n_jobs: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            coef0=coef0,
            degree=degree,
            landmarks="uniform",
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.n_components = n_components

    def _check_parameters(self) -> None:
        self.n_landmarks = self.n_components  # after set_params
        self.kernel = "poly" if self.kernel == "polynomial" else self.kernel
        for name, default in (("gamma", "auto"), ("coef0", 1.0), ("degree", 3)):
            if getattr(self, name) is None:
                setattr(self, name, default)
        super()._check_parameters()

    @property
    def components_(self) -> Any:
        """The landmarks."""
        return self.landmarks_


ADAPTERS = (SVC, LinearSVC, SGDClassifier, KernelRidge, Nystroem)
