"""Published reports and logs checked against themselves, and the measuring rules of others."""
