"""What a model is: its dimensions, layers, number formats, adapters and recomputation."""
