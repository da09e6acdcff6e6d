"""One check a file: a function from a report to the findings in it."""
