"""Linear machines: minimise 1/2 ||w||^2 + C R(w), with the risk R replaced by the maximum of its cutting planes."""
