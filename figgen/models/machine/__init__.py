"""Where ranks run: meshes, layouts, placement on nodes, fabrics and NCCL's choices."""
