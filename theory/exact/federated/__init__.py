"""Exact laws of federated algorithms."""
