"""What each subject says: one function a subject, from its dataclass to a page."""
