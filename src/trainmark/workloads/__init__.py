"""The programs measured, in their frameworks' environments; of ours they import only the probe."""
