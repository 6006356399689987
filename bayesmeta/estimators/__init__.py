"""Estimators of the prior from what tasks leave behind."""
