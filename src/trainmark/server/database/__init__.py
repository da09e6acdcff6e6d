"""Tables, migrations and the questions that pages and the API ask."""
