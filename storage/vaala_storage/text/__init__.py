"""How text is searched: folding, words, what a query means, snippets. No storage in here."""
