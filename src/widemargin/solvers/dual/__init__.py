"""The dual problem of kernel machines: minimise 1/2 b'Kb - t'b over a box and, with an intercept, sum b = 0."""
