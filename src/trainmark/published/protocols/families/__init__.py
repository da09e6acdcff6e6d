"""One small file a family of rules; each names its protocols in `PROTOCOLS`."""
