"""The compiled loops: C++17, arrays in and arrays out, one extension module for each processor level.

    x86-64       v2 (every processor since 2009), v3 (AVX2), v4 (AVX-512): the best one that the processor supports
    elsewhere    one module, `generic`

The environment variable WIDEMARGIN_PROCESSOR_LEVEL (v2, v3, v4 or generic) forces a level. Arguments are checked: no
call reads or writes outside an array. Wrong dtypes and layouts raise TypeError, sizes that contradict each other
ValueError, indices out of range IndexError.
"""

from ._levels import LEVEL, load

_module = load(LEVEL)

Stopped = _module.Stopped
Team = _module.Team
budget = _module.budget
csr = _module.csr
dense = _module.dense
dual = _module.dual
gradients = _module.gradients
hinge = _module.hinge
keep_freed_memory = _module.keep_freed_memory
kernels = _module.kernels
linear = _module.linear
nystroem = _module.nystroem
return_freed_memory = _module.return_freed_memory
shapley = _module.shapley
smooth = _module.smooth

__all__ = [
    "LEVEL",
    "Stopped",
    "Team",
    "budget",
    "csr",
    "dense",
    "dual",
    "gradients",
    "hinge",
    "keep_freed_memory",
    "kernels",
    "linear",
    "nystroem",
    "return_freed_memory",
    "shapley",
    "smooth",
]
