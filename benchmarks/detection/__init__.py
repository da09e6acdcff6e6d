"""Change points counted against known truth, beside Apache Otava's."""
