"""What a report claims: columns, devices, series, rules, shown logs, statements."""
