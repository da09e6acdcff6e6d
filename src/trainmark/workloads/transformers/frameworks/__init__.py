"""The data, the step and main of a transformer's training, one file a framework; a family adds its model."""
