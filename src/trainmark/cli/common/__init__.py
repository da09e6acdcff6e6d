"""What the commands share: options, screens, the terminal, and how an error is reported."""
