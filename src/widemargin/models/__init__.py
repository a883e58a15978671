"""Fitted decision functions: arrays only, whoever trained them."""
