"""Who may do what: tokens, sessions of browsers, limits, headers and the audit log."""
