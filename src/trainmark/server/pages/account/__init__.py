"""Signing in and out, and the tokens that admins make."""
