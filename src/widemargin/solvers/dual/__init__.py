"""The dual of kernel machines: minimise 1/2 beta'K beta - t'beta over a box and, with an intercept, at a fixed sum."""
