"""Each framework's own way from images on disk to a step, one file each; see docs/loaders.md."""
