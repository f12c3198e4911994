"""What figures share: words, series and bars in their colours."""
