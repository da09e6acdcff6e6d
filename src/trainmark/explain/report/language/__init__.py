"""The words of an explanation in English and Chinese."""
