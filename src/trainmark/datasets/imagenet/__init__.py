"""ImageNet (ILSVRC2012) from its two tars to class folders."""
