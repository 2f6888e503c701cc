"""Plain HTTP: health, views and the page; imported at the first request that is no upgrade."""
