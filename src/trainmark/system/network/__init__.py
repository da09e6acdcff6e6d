"""What joins this machine to others."""
