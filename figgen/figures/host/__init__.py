"""What leaves the GPU: state that the host holds, and state that storage keeps."""
