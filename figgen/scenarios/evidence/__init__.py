"""The model held against published runs, memory peaks, plans and other predictors."""
