"""The GPUs of this machine, by NVML and nvidia-smi."""
