"""What is known of models: windows, limits, features and prices, each with who says it."""
