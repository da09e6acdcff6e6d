"""Where a step goes: time by class and by module, floors, and whether the profile can be believed."""
