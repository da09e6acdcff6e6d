"""Pages for people, made on the server."""
