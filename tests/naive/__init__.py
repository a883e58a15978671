"""Slow, obvious NumPy twins of the package's fast functions: the truth the tests compare with."""
