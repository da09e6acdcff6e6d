"""A real server with a real database, and what is sent to it: for the measurements and the tests."""
