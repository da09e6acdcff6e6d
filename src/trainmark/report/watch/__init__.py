"""What a confirmation says: to a person, to CI, to a chat."""
