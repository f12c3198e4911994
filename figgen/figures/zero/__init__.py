"""ZeRO and FSDP: state sharded over the replicas."""
