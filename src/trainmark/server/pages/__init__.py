"""The server's pages: HTML made on the server, in English and Chinese."""
