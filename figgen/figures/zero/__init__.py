"""ZeRO and FSDP: the state divided over the replicas."""
