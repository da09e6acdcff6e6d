"""The runner: carries a plan out. It joins suite, launch, readers, system, measure and store; they do not meet."""
