"""The model fitted to published series, and tested on those that were left out."""
