"""The runner: carries a plan out. Suite, launch, readers, system, measure and store meet only here."""
