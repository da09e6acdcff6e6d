"""Where the steps of a trace end: by annotations, else by the kernels that repeat."""
